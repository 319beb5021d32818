# expect: R07
import pytorch_lightning as pl
import torch
class GradNorm(pl.Callback):
    def on_after_backward(self, trainer, pl_module):
        total = torch.norm(torch.stack([p.grad.detach().norm(2) for p in pl_module.parameters() if p.grad is not None]), 2)
        pl_module.log("grad_norm", total)
def main(lit, dm):
    trainer = pl.Trainer(precision="16-mixed", callbacks=[GradNorm()], max_epochs=3)
    trainer.fit(lit, dm)
