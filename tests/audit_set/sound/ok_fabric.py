# expect: none
import torch
from lightning.fabric import Fabric
fabric = Fabric(precision="16-mixed")
def train(model, optimizer, loader):
    model, optimizer = fabric.setup(model, optimizer)
    for x, y in fabric.setup_dataloaders(loader):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
