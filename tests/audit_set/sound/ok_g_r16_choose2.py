import torch.nn as nn
def mk(act="relu", p=0.1):
    drop = nn.AlphaDropout if act == "selu" else nn.Dropout
    acts = {"relu": nn.ReLU, "selu": nn.SELU}
    return nn.Sequential(nn.Linear(3, 3), acts[act](), drop(p))
