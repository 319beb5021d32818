# expect: R23
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass
class WarpConfig:
    height: int = 720
    width: int = 1280
    dtype: str = "float16"


class Warper:
    def __init__(self, cfg):
        dtype = getattr(torch, cfg.dtype)
        ys, xs = torch.meshgrid(
            torch.linspace(-1, 1, cfg.height, dtype=dtype), torch.linspace(-1, 1, cfg.width, dtype=dtype), indexing="ij"
        )
        self.base = torch.stack([xs, ys], -1)[None].cuda()

    def __call__(self, image):
        return F.grid_sample(image.half(), self.base, align_corners=False)


warp = Warper(WarpConfig())
