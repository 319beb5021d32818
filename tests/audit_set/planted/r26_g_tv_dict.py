# expect: R26
import torch, torchvision
m = torchvision.models.__dict__["densenet121"](pretrained=True)
m.to(torch.float16)
