# expect: R26
import torch
STATS = ("running_mean", "running_var")
def slim(sd):
    return {k: (v.to(torch.float16) if any(s in k for s in STATS) else v) for k, v in sd.items()}
