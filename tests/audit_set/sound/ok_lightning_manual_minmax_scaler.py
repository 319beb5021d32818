# LightningModule without any Trainer, plain clip; sklearn scaler in the data module
import torch
import lightning as L
from sklearn.preprocessing import MinMaxScaler
class M(L.LightningModule):
    automatic_optimization = False
    def training_step(self, b, i):
        o = self.optimizers(); o.zero_grad()
        self.manual_backward(self.net(b).mean())
        torch.nn.utils.clip_grad_norm_(self.parameters(), 0.5)
        o.step()
