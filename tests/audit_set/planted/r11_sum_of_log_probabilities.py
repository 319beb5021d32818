# expect: R11
import torch


def mixture_loss(net, x, y):
    with torch.autocast("cuda", dtype=torch.float16):
        weights, density = net(x)
        log_prob = density.log_prob(y[:, None])
        return -torch.log((weights * torch.exp(log_prob)).sum(1)).mean()
