import torch.nn as nn
def mk(act):
    if act == "selu":
        a, d = nn.SELU(), nn.AlphaDropout(0.1)
    else:
        a, d = nn.ReLU(), nn.Dropout(0.1)
    return nn.Sequential(nn.Linear(3, 3), a, d)
