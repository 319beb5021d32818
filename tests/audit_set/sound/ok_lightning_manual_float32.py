# Trainer(max_epochs=3): float32
import torch
import lightning as L
from torch.cuda.amp import GradScaler  # unused
class M(L.LightningModule):
    automatic_optimization = False
    def training_step(self, b, i):
        o = self.optimizers(); o.zero_grad()
        self.manual_backward(self.net(b).mean())
        torch.nn.utils.clip_grad_norm_(self.parameters(), 0.5)
        o.step()
L.Trainer(max_epochs=3).fit(M())
