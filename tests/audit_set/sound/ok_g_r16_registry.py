import torch.nn as nn
DROPOUTS = {"dropout": nn.Dropout, "alpha": nn.AlphaDropout, "feature": nn.Dropout2d}
def get(name, p):
    return DROPOUTS[name](p)
