# expect: R01
import torch
import torch.nn.functional as F

def train(model, x, y):
    with torch.autocast("cuda", dtype=torch.float16):
        out = model(x)
        with torch.autocast("cuda", enabled=False):
            loss = F.cross_entropy(out, y)
