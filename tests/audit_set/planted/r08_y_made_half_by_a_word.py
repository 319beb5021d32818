# expect: R08
import torch
from torch.amp import GradScaler, autocast


def prepare(net, precision):
    net = net.cuda()
    if precision == "fp16":
        net = net.half()
    return net


class Job:
    def __init__(self, net, conf, batches):
        self.net = prepare(net, conf.get("precision", "amp"))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=conf["lr"])
        self.scaler = GradScaler("cuda")
        self.batches = batches

    def run(self):
        for x, y in self.batches:
            with autocast("cuda", dtype=torch.float16):
                loss = torch.nn.functional.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt)
            self.scaler.update()


def main(net, batches):
    Job(net, {"lr": 0.1, "precision": "fp16"}, batches).run()
