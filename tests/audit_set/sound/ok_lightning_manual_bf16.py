# Trainer(precision="bf16-mixed")
import torch
import lightning as L
class M(L.LightningModule):
    automatic_optimization = False
    def training_step(self, b, i):
        o = self.optimizers(); o.zero_grad()
        self.manual_backward(self.net(b).mean())
        torch.nn.utils.clip_grad_norm_(self.parameters(), 0.5)
        o.step()
L.Trainer(precision="bf16-mixed").fit(M())
