# expect: none
import torch
import torch.nn.functional as F


def similarity(model, a, b):
    with torch.autocast("cuda", dtype=torch.float16):
        za = F.normalize(model(a), dim=-1)
        zb = F.normalize(model(b), dim=-1)
        norm = model(a).norm(dim=-1, keepdim=True) + 1e-8
        return (za * zb).sum(-1) / norm
