# expect: R23
import torch, torch.nn.functional as F
def warp(img, flow_net, base):
    with torch.autocast("cuda", dtype=torch.float16):
        flow = F.conv2d(img, flow_net.weight)
        grid = base.half() + flow.permute(0, 2, 3, 1)
        return F.grid_sample(img, grid)
