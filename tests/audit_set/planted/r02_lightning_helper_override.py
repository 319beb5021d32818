# expect: R02
import lightning as L
import torch
from shop.nets import Net

class Task(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = Net()

    def go_back(self, loss):
        self.manual_backward(loss)

    def training_step(self, batch, index):
        opt = self.optimizers()
        opt.zero_grad()
        self.go_back(torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]))
        opt.step()

class TwiceTask(Task):
    def go_back(self, loss):
        loss.backward(retain_graph=True)

L.Trainer(precision="16-mixed").fit(TwiceTask(), None)
