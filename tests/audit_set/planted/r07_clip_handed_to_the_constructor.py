# expect: R07
import torch


def clip(params, limit=1.0):
    return torch.nn.utils.clip_grad_norm_(params, limit)


class Loop:
    def __init__(self, net, before_step):
        self.net = net.cuda()
        self.opt = torch.optim.AdamW(net.parameters())
        self.scaler = torch.amp.GradScaler("cuda")
        self.before_step = before_step

    def step(self, x, y):
        self.opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.before_step(self.net.parameters())
        self.scaler.step(self.opt)
        self.scaler.update()


def main(net, loader):
    loop = Loop(net, clip)
    for x, y in loader:
        loop.step(x, y)
