import torch
from torch import nn
import torch.nn.functional as F
import lightning as L
class LM(L.LightningModule):
    def __init__(self, net):
        super().__init__(); self.net = net; self.automatic_optimization = False
    def training_step(self, b, i):
        opt = self.optimizers()
        opt.zero_grad()
        self.manual_backward(F.mse_loss(self.net(b[0]), b[1]))
        nn.utils.clip_grad_norm_(self.parameters(), 0.5)
        opt.step()
def main(net, dl, args):
    L.Trainer(precision="bf16-mixed" if args.amp else "32-true").fit(LM(net), dl)
