# expect: none
import torch
import torch.nn.functional as F

def loss(a, b):
    a, b = F.normalize(a, dim=1), F.normalize(b, dim=1)
    e = torch.exp(a @ b.t() / 0.1)
    return -torch.log(e.diagonal() / e.sum(1)).mean()
def train(x, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        scaler.scale(loss(x, x)).backward()
