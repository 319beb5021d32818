import torch, torch.nn.functional as F
def run(net, a):
    net.half()
    x = F.interpolate(a, (256, 256)).half()
    return F.grid_sample(x, net(x), align_corners=True)
