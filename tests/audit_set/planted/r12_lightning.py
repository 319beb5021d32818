# expect: R12
import pytorch_lightning as pl
import torch
from torch import nn


class Detector(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.bce = nn.BCELoss()

    def training_step(self, batch, batch_idx):
        x, y = batch
        return self.bce(torch.sigmoid(self.net(x)), y)


if __name__ == "__main__":
    trainer = pl.Trainer(accelerator="gpu", precision="16-mixed")
