# expect: R23
import torch
import torch.nn as nn

def warp(img, grid):
    return torch.nn.functional.grid_sample(img, grid.to(img), align_corners=False)
def main(paths, model):
    model = model.half()
    for p in paths:
        img = load(p).half()
        warp(img, compute(img.shape))
