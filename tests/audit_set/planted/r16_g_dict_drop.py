# expect: R16
import torch.nn as nn
DROPS = {"std": nn.Dropout, "alpha": nn.AlphaDropout}
def block(d, kind="alpha"):
    return nn.Sequential(nn.Linear(d, d), nn.ReLU(), DROPS[kind](0.1))
