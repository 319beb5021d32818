# expect: R27
import contextlib

import torch

CONTEXTS = {
    "fp32": contextlib.nullcontext,
    "amp": lambda: torch.autocast("cuda", dtype=torch.float32),
}


def train(model, opt, loader, cfg):
    for x, y in loader:
        opt.zero_grad()
        with CONTEXTS[cfg.precision]():
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
