import torch
import lightning as L
class Net(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.automatic_optimization = False
        self.net = net
    def training_step(self, batch, i):
        opt = self.optimizers()
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        opt.zero_grad()
        self.manual_backward(loss)
        opt.step()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
def main(net, loader):
    L.Trainer(precision='16-mixed', max_epochs=3).fit(Net(net), loader)
