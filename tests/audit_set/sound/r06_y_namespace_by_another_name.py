from types import SimpleNamespace as Conf

import torch

conf = Conf(steps=30_000, amp=Conf(growth_interval=2_000))


def scaler_of(a):
    return torch.amp.GradScaler("cuda", growth_interval=a.growth_interval)


def train(net, opt, batches):
    scaler = scaler_of(conf.amp)
    for _ in range(conf.steps):
        x, y = next(batches)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
