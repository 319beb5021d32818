# expect: R28
import torch
from torch.nn.functional import mse_loss


def fit(net, batches, opt, schedule, half=False):
    scaler = torch.amp.GradScaler("cuda", enabled=half)
    for x, y in batches:
        with torch.autocast("cuda", dtype=torch.float16, enabled=half):
            loss = mse_loss(net(x), y)
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        schedule.step()
