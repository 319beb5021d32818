# expect: R04
import torch

scaler = torch.amp.GradScaler("cuda")


def do_step(opt):
    ret = scaler.step(opt)
    scaler.update()
    return ret


def loop(opt, losses):
    skipped = 0
    for loss in losses:
        opt.zero_grad()
        scaler.scale(loss).backward()
        if do_step(opt) is None:
            skipped += 1
    return skipped
