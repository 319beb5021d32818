# expect: R07
import torch
from torch import nn
import torch.nn.functional as F
import lightning as L
CFG = {"precision": "16-mixed", "max_epochs": 10}
class LM(L.LightningModule):
    def __init__(self, net):
        super().__init__(); self.net = net; self.automatic_optimization = False
    def training_step(self, b, i):
        opt = self.optimizers()
        opt.zero_grad()
        self.manual_backward(F.mse_loss(self.net(b[0]), b[1]))
        norm = nn.utils.clip_grad_norm_(self.parameters(), 0.5)
        self.log("gn", norm)
        opt.step()
def main(net, dl):
    trainer = L.Trainer(**CFG)
    trainer.fit(LM(net), dl)
