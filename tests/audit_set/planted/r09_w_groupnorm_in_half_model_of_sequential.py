# expect: R09
import torch
import torch.nn as nn

net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8, eps=1e-12), nn.ReLU())
net = net.to(device="cuda", dtype=torch.float16)
