# expect: R08
import torch
from torch import nn
def network_to_half(net):
    for layer in net.modules():
        if not isinstance(layer, nn.BatchNorm2d):
            layer.half()
    return net
def main(net, loader):
    net = network_to_half(net.cuda())
    scaler = torch.amp.GradScaler("cuda")
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.half().cuda()).float(), y.cuda())
        opt.zero_grad(); scaler.scale(loss).backward(); scaler.step(opt); scaler.update()
