import torch
import torch.nn.functional as F


def unlikelihood(model, tokens, wrong):
    with torch.autocast("cuda", dtype=torch.float16):
        logp = -F.cross_entropy(model(tokens).flatten(0, 1), wrong.flatten(), reduction="none")
        return -torch.log(1 - torch.exp(logp) + 1e-2).mean()  # the number keeps the logarithm finite


def log_one_minus_exp(x):
    return torch.where(x > -0.7, torch.log(-torch.expm1(x)), torch.log1p(-torch.exp(x)))


class Schedule:
    def log_snr(self, t):
        log_alpha = self.log_alpha(t)  # of a noise schedule: negative for every t > 0
        return log_alpha - 0.5 * torch.log(1 - torch.exp(2 * log_alpha))
