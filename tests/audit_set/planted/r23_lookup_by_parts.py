# expect: R23
import torch, torch.nn.functional as F
def sampler(img, coords):
    H, W = img.shape[-2:]
    x, y = coords.split([1, 1], dim=-1)
    x = 2 * x / (W - 1) - 1
    y = 2 * y / (H - 1) - 1
    return F.grid_sample(img, torch.cat([x, y], dim=-1), align_corners=True)
def run(net, im1, im2):
    net = net.half()
    im1 = F.interpolate(im1, (1088, 1920)).half()
    im2 = F.interpolate(im2, (1088, 1920)).half()
    c = net(im1, im2)
    return sampler(im2, c.permute(0, 2, 3, 1))
