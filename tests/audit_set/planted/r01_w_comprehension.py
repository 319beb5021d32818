# expect: R01
import torch
import torch.nn.functional as F

def train(model, x, ys):
    with torch.autocast("cuda"):
        outs = model(x)
    loss = sum(F.cross_entropy(o, y) for o, y in zip(outs, ys))
