# expect: none
import lightning as L
import torch
from torch import nn


class Lit(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.loss = nn.BCEWithLogitsLoss()

    def training_step(self, batch, batch_idx):
        x, y = batch
        return self.loss(self.net(x), y)

    def on_before_optimizer_step(self, optimizer):
        norms = [p.grad.norm() for p in self.parameters() if p.grad is not None]
        self.log("grad_norm", torch.stack(norms).norm())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


trainer = L.Trainer(precision="16-mixed", gradient_clip_val=1.0)
