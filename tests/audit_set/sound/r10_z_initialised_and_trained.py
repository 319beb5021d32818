import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone, head
        self.apply(self.init_bn)

    def init_bn(self, part):
        for m in part.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eps = 1e-3
                m.momentum = 0.03

    def load_pretrained(self, path):  # what was trained with this very class
        self.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))


class Node(nn.Module):
    def start(self, weights):
        if "://" in weights:
            self.load_checkpoint(weights)
        else:
            self.initialize_weights()

    def load_checkpoint(self, where):
        self.load_state_dict(torch.load(where, weights_only=True))

    def initialize_weights(self):
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eps = 1e-3


class Other(nn.Module):
    def prepare(self, path=None):
        if path is not None:
            self.load_state_dict(torch.load(path, weights_only=True))
            return
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eps = 1e-3
