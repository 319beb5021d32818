# expect: R12
import torch
import torch.nn.functional as F

def train(net, x, y):
    amp = torch.autocast("cuda")
    amp.__enter__()
    loss = F.binary_cross_entropy(net(x), y)
    amp.__exit__(None, None, None)
