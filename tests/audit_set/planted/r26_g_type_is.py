# expect: R26
import torch, torch.nn as nn
def h(model):
    for m in model.modules():
        if type(m) is nn.BatchNorm2d:
            m.half()
