# expect: R14
import torch
Autocast = torch.cuda.amp.autocast
def f(m, x):
    with Autocast(): return m(x)
