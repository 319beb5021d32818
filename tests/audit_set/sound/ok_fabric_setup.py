import torch
from lightning.fabric import Fabric


def main(model, loader, criterion):
    fabric = Fabric(accelerator="cuda", precision="16-mixed")
    fabric.launch()
    opt = torch.optim.AdamW(model.parameters())
    model, opt = fabric.setup(model, opt)
    loader = fabric.setup_dataloaders(loader)
    for x, y in loader:
        opt.zero_grad()
        loss = criterion(model(x), y)
        fabric.backward(loss)
        fabric.clip_gradients(model, opt, max_norm=1.0)
        opt.step()
