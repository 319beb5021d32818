# expect: R09
import torch
def safe_div(a, b):
    return a / torch.where(b == 0, 1e-12, b)
def go(m, x):
    m = m.half()
    o = m(x.half())
    return safe_div(o, o.mean(-1, keepdim=True))
