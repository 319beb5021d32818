# expect: R06
import torch
import yaml

TEXT = "amp: {growth_interval: 10}\noptim: {lr: 0.001}\n"


def read():
    cfg = yaml.safe_load(TEXT)
    return cfg


def build(cfg, net):
    opt = torch.optim.AdamW(net.parameters(), lr=cfg["optim"]["lr"])
    return opt, torch.amp.GradScaler("cuda", growth_interval=cfg["amp"]["growth_interval"])


def train(cfg, net, loader):
    opt, scaler = build(cfg, net)
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()


if __name__ == "__main__":
    settings = read()
    train(settings, torch.nn.Linear(8, 3).cuda(), [])
