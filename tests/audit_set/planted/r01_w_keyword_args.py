# expect: R01
import torch
import torch.nn.functional as F

def train(model, x, y):
    with torch.autocast("cuda"):
        o = model(x)
    loss = F.cross_entropy(input=o, target=y)
