# expect: R07
import torch
from torch import nn
import lightning as L
from dataclasses import dataclass
@dataclass
class Cfg:
    precision: str = "16-mixed"
    epochs: int = 3
class GAN(L.LightningModule):
    def __init__(self, g, d):
        super().__init__(); self.g, self.d = g, d; self.automatic_optimization = False
    def training_step(self, b, i):
        og, od = self.optimizers()
        self.toggle_optimizer(og)
        loss = self.d(self.g(b)).mean()
        og.zero_grad()
        self.manual_backward(loss)
        nn.utils.clip_grad_norm_(self.g.parameters(), 1.0)
        og.step()
        self.untoggle_optimizer(og)
def main(g, d, dl, cfg: Cfg):
    L.Trainer(precision=cfg.precision, max_epochs=cfg.epochs).fit(GAN(g, d), dl)
