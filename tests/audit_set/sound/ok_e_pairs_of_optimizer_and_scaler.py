# expect: none
import torch


def step_all(losses, opts):
    scalers = [torch.amp.GradScaler("cuda") for _ in opts]
    while True:
        for loss, scaler in zip(losses(), scalers):
            scaler.scale(loss).backward()
        for opt, scaler in zip(opts, scalers):
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
