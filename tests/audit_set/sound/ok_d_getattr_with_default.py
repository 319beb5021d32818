# expect: none
import torch
from torch import nn


def losses(name="BCELoss"):
    legacy = getattr(torch.cuda.amp, "autocast", None)
    amp = torch.autocast("cuda") if legacy is None else torch.autocast("cuda", dtype=torch.float16)
    return getattr(nn, name)(), amp
