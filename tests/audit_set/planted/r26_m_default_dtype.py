# expect: R26
import torch
import torch.nn as nn
torch.set_default_dtype(torch.float16)
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
