# expect: R11
import torch

def f(x):
    x = x.half()
    a, b = torch.exp(x), torch.exp(-x)
    return (a - b) / (a + b)
