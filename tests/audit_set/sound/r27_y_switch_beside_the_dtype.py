import contextlib

import torch

KINDS = {"half": torch.float16, "full": torch.float32, "fp32": torch.float32}
CONF = {"lr": 1e-3, "amp": {"enabled": False, "dtype": "fp32"}}


def region(conf):
    if not conf["amp"]["enabled"]:
        return contextlib.nullcontext()
    return torch.autocast("cuda", dtype=KINDS[conf["amp"]["dtype"]])


def train(model, batches):
    model = model.cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=CONF["lr"])
    for x, y in batches:
        with region(CONF):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
