# expect: R08
import torch

half = torch.half


def setup(net):
    net = net.cuda().to(half)
    opt = torch.optim.Adam(net.parameters(), lr=3e-4)
    return net, opt


def train(net, opt, loader, criterion):
    for x, y in loader:
        opt.zero_grad()
        criterion(net(x.to(half)).float(), y).backward()
        opt.step()
