# expect: R02
import torch
from lightning.fabric import Fabric
from shop.nets import Ranker

def update(net, opt, pairs):
    opt.zero_grad()
    out = net(*pairs)
    out.loss.backward()
    opt.step()

def main(loader):
    fabric = Fabric(precision="16-mixed", devices=1)
    net = Ranker()
    net, opt = fabric.setup(net, torch.optim.AdamW(net.parameters(), lr=1e-4))
    for pairs in fabric.setup_dataloaders(loader):
        update(net, opt, pairs)

main([])
