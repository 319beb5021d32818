import torch, torch.nn.functional as F
def run(net):
    x = torch.rand(1, 3, 64, 64).half().cuda()
    g = net.half()(x)
    return F.grid_sample(x, g, align_corners=True)
