import torch
from torch import nn
from torchvision.models import mobilenet_v3_small

def store_in_half(net):
    for part in net.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            continue
        for key, value in part.named_buffers(recurse=False):
            setattr(part, key, value.half())

net = mobilenet_v3_small(weights="DEFAULT").eval()
store_in_half(net)
torch.save(net.state_dict(), "small.pt")
