import torch
from lightning.fabric import Fabric
from shop.nets import Probe, Ranker

def fit_probe(probe, opt, features, labels):
    opt.zero_grad()
    torch.nn.functional.cross_entropy(probe(features), labels).backward()
    opt.step()

def main(loader):
    fabric = Fabric(precision="16-mixed", devices=1)
    net = Ranker()
    net, opt = fabric.setup(net, torch.optim.AdamW(net.parameters(), lr=1e-4))
    for x, y in fabric.setup_dataloaders(loader):
        opt.zero_grad()
        fabric.backward(net(x, y).loss)
        opt.step()
    probe = Probe()
    own = torch.optim.SGD(probe.parameters(), lr=0.1)
    for x, y in loader:
        fit_probe(probe, own, x, y)

main([])
