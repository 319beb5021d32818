import torch, torch.nn.functional as F
def bce(l, t):
    return F.binary_cross_entropy_with_logits(l, t)
def ce(l, t):
    return F.cross_entropy(l, t)
LOSSES = {"bce": bce, "ce": ce}
def step(net, x, y, cfg):
    with torch.autocast("cuda", dtype=torch.float16):
        return LOSSES[cfg["loss"]](net(x), y)
