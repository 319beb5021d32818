# expect: R25
import torch


class Validator:
    def __call__(self, trainer, model, loader):
        self.half = trainer.device.type != "cpu" and trainer.amp
        model = trainer.ema.ema or trainer.model
        model = model.half() if self.half else model.float()
        model.eval()
        with torch.no_grad():
            for batch in loader:
                img = batch["img"].to(trainer.device)
                img = (img.half() if self.half else img.float()) / 255
                preds = model(img)
                self.update_metrics(preds, batch)
        model.float()
        return self.metrics
