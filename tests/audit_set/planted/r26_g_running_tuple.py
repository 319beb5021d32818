# expect: R26
import torch
import torch.nn as nn
def c(model):
    for m in model.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm):
            m.running_mean = m.running_mean.to(torch.float16)
            m.running_var = m.running_var.to(torch.float16)
