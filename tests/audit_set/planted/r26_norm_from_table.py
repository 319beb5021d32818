# expect: R26
import argparse
import torch
from torch import nn

NORMS = {"batch": nn.BatchNorm2d, "instance": nn.InstanceNorm2d}

class Stem(nn.Module):
    def __init__(self, norm):
        super().__init__()
        make = NORMS[norm]
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3), make(16), nn.ReLU())

    def forward(self, x):
        return self.body(x)

parser = argparse.ArgumentParser()
parser.add_argument("--norm", default="batch")
args = parser.parse_args()
net = Stem(args.norm)
net.load_state_dict(torch.load("stem.pt", weights_only=True))
net.eval().half()
