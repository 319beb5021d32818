# expect: R28
import torch


def step(G, D, opt_g, opt_d, scaler, d_loss, g_loss):
    opt_d.zero_grad()
    scaler.scale(d_loss).backward()
    scaler.step(opt_d)
    scaler.step(opt_d)
    scaler.update()
    opt_g.zero_grad()
    scaler.scale(g_loss).backward()
    scaler.step(opt_g)
    scaler.update()
