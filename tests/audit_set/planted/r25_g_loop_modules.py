# expect: R25
import torch.nn as nn, torch
def emulate(model):
    for m in model.modules():
        if isinstance(m, (nn.Linear, nn.Conv2d)):
            m.weight.data = m.weight.data.half().float()
    return model
def main(model):
    return torch.ao.quantization.prepare_qat(emulate(model))
