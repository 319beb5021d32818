# expect: R23
import torch
import torch.nn.functional as F

import argparse
def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dtype", default="float16", choices=["float16", "float32"])
    a = p.parse_args()
    dt = getattr(torch, a.dtype)
    img = load().to("cuda", dt)
    grid = mk().to("cuda", dt)
    F.grid_sample(img, grid)
