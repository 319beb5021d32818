# expect: R10
import torch
from torch import nn
class NormPatcher:
    def __init__(self, eps):
        self.eps = eps
    def __call__(self, module):
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.eps = self.eps
def deploy(build):
    model = build()
    model.load_state_dict(torch.load("best.pt", weights_only=True))
    model.apply(NormPatcher(1e-2))
    return model.half().eval()
