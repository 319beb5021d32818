# expect: R02
import torch
from torch.nn.functional import mse_loss


def run(net, opt, batches, accumulate):
    scaler = torch.amp.GradScaler("cuda")
    if accumulate > 1:

        def share(value):
            return value / accumulate

    else:

        def share(value):
            return value

    for i, (x, y) in enumerate(batches):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = mse_loss(net(x), y)
        share(loss).backward()
        if (i + 1) % accumulate == 0:
            scaler.step(opt)
            scaler.update()
            opt.zero_grad(set_to_none=True)
