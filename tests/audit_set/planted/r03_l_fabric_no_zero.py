# expect: R03
import torch
from lightning.fabric import Fabric
def main(model, loader):
    fabric = Fabric(precision='16-mixed')
    fabric.launch()
    model, opt = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for x, y in fabric.setup_dataloaders(loader):
        fabric.backward(torch.nn.functional.mse_loss(model(x), y))
        fabric.clip_gradients(model, opt, max_norm=1.0)
        opt.step()
