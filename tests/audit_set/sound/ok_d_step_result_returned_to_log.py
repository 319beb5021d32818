# expect: none
import torch

scaler = torch.amp.GradScaler("cuda")


def do_step(opt):
    ret = scaler.step(opt)
    scaler.update()
    return ret


def loop(opt, losses, log):
    for loss in losses:
        opt.zero_grad()
        scaler.scale(loss).backward()
        log(do_step(opt))
