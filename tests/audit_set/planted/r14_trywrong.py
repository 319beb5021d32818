# expect: R14
try:
    from torch.cuda.amp import autocast
except ImportError:
    autocast = None
def f(m, x):
    with autocast(): return m(x)
