# expect: R12
import torch, torch.nn as nn
from functools import partial
amp = partial(torch.autocast, device_type="cuda", dtype=torch.float16)
bce = nn.BCELoss()
def step(net, x, y):
    with amp():
        return bce(net(x).sigmoid(), y)
