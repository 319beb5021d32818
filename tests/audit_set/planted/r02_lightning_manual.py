# expect: R02
import lightning as L
import torch
from torch import nn


class GAN(L.LightningModule):
    def __init__(self, gen, disc):
        super().__init__()
        self.gen, self.disc = gen, disc
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        loss = nn.functional.softplus(-self.disc(self.gen(batch))).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


trainer = L.Trainer(precision="16-mixed", max_epochs=10)
