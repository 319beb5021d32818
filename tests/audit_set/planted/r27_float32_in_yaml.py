# expect: R27
import torch
import yaml

DEFAULTS = yaml.safe_load("""
device: cuda
amp: {enabled: true, dtype: float32}
""")


def amp_context(cfg):
    return torch.autocast(cfg["device"], dtype=getattr(torch, cfg["amp"]["dtype"]), enabled=cfg["amp"]["enabled"])


def train(net, loader, opt, cfg=DEFAULTS):
    for x, y in loader:
        with amp_context(cfg):
            loss = torch.nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
