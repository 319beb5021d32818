# expect: R05
import torch
def watch(scaler, log):
    s = scaler.get_scale()
    if s < 16384:
        log.warning("loss scale too small")
scaler = torch.amp.GradScaler("cuda")
