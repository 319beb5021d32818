# expect: R11
import torch

def info_nce(a, b, temp):
    sim = (a / temp) @ b.t()
    num = torch.exp(sim.diagonal())
    den = torch.exp(sim).sum(dim=1)
    return -torch.log(num / den).mean()
def train(m, x, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        scaler.scale(info_nce(m(x), m(x), 0.05)).backward()
