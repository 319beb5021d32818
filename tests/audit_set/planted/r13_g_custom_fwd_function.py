# expect: R13
import torch
from torch.amp import custom_fwd
@custom_fwd(device_type="cuda", cast_inputs=torch.float32)
def stable_loss(logits, target):
    return torch.nn.functional.cross_entropy(logits, target)
def step(net, x, y):
    with torch.autocast("cuda", dtype=torch.float16):
        return stable_loss(net(x), y)
