from dataclasses import dataclass

import torch
import torchvision


@dataclass
class ServeConfig:
    precision: str = "fp32"
    weights: str = "r50.pt"

    @property
    def half(self):
        return self.precision == "fp16"


class Server:
    def __init__(self, cfg):
        self.cfg = cfg
        net = torchvision.models.resnet50()
        net.load_state_dict(torch.load(cfg.weights, weights_only=True))
        net = net.cuda().eval()
        self.net = net.half() if cfg.half else net


server = Server(ServeConfig())
