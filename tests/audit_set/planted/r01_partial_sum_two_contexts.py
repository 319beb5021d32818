# expect: R01
import functools

import torch
import torch.nn.functional as F
from torch.profiler import record_function

recon = functools.partial(F.mse_loss, reduction="sum")


def train_epoch(autoencoder, loader, opt):
    scaler = torch.amp.GradScaler()
    for x in loader:
        x = x.to("cuda", non_blocking=True)
        with torch.autocast("cuda"), record_function("forward"):
            z = autoencoder.encode(x)
            x_hat = autoencoder.decode(z)
        target = x.half()
        loss = recon(x_hat, target)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
