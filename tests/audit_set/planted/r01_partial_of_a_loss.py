# expect: R01
import torch, torch.nn.functional as F
from functools import partial
def loss_of(smooth, o, y):
    return F.cross_entropy(o, y, label_smoothing=smooth)
criterion = partial(loss_of, 0.1)
def step(net, x, y, opt, sc):
    with torch.autocast("cuda", dtype=torch.float16):
        o = net(x)
    loss = criterion(o, y)
    sc.scale(loss).backward(); sc.step(opt); sc.update(); opt.zero_grad()
