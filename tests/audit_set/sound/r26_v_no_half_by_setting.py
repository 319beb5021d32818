from types import SimpleNamespace

import torch
import torchvision

CFG = SimpleNamespace(arch="resnet50", half=False, batch=8)


class Detector:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = torchvision.models.get_model(cfg.arch, weights="DEFAULT").eval().cuda()
        if self.cfg.half:
            self.model.half()

    @torch.inference_mode()
    def __call__(self, x):
        if self.cfg.half:
            x = x.half()
        return self.model(x.cuda()).float()


detector = Detector(CFG)
