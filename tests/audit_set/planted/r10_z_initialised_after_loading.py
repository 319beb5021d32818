# expect: R10
import torch
from torch import nn


class Detector(nn.Module):
    def start(self, path):
        self.load_state_dict(torch.load(path, weights_only=True))
        self.initialize_bn()

    def initialize_bn(self):
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eps = 1e-3
