# expect: R09
import torch, torch.nn.functional as F
def embed(net, x):
    with torch.autocast("cpu", dtype=torch.float16):
        return F.normalize(net(x), dim=-1, eps=1e-12)
