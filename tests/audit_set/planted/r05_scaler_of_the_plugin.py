# expect: R05
import lightning as L

LOW, HIGH = 2**14, 2**18


class Guard(L.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        if scaler is not None and not LOW <= scaler.get_scale() <= HIGH:
            trainer.should_stop = True


trainer = L.Trainer(precision="16-mixed", callbacks=[Guard()])
