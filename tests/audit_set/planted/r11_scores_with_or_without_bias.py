# expect: R11
import math

import torch


def scores(q, k, mask=None):
    s = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
    return s if mask is None else s + mask


def attend(q, k, v):
    return scores(q, k).softmax(-1) @ v


def step(net, x, y, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = torch.nn.functional.mse_loss(attend(*net(x)), y)
    scaler.scale(loss).backward()
