# expect: R27
import contextlib

import torch


class Registry(dict):
    def register(self, name):
        def deco(fn):
            self[name] = fn
            return fn
        return deco


PRECISION = Registry()


@PRECISION.register("amp")
def amp_context():
    return torch.autocast("cuda", dtype=torch.float32)


@PRECISION.register("none")
def no_context():
    return contextlib.nullcontext()


def train(model, opt, loader, precision="amp"):
    for x, y in loader:
        opt.zero_grad()
        with PRECISION[precision]():
            loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
