# expect: R23
import torch

def f(img, g):
    return torch.grid_sampler(img.half(), g.half(), 0, 0, False)
