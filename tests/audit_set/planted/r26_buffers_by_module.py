# expect: R26
import torch
from torchvision.models import mobilenet_v3_small

def store_in_half(net):
    for part in net.modules():
        for key, value in part.named_buffers(recurse=False):
            if value.is_floating_point():
                setattr(part, key, value.half())

net = mobilenet_v3_small(weights="DEFAULT").eval()
store_in_half(net)
torch.save(net.state_dict(), "small.pt")
