import torch


class Trainer:
    _savable = ["net", "opt", "scaler"]

    def __init__(self, net, loader):
        self.net = net.cuda()
        self.loader = loader
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cuda")
        self.epoch = 0

    def state_dict(self):
        out = {"epoch": self.epoch}
        for name in self._savable:
            out[name] = getattr(self, name).state_dict()
        return out

    def load_state_dict(self, state):
        self.epoch = state["epoch"]
        for name in self._savable:
            getattr(self, name).load_state_dict(state[name])

    def fit(self, epochs, path):
        while self.epoch < epochs:
            for x, y in self.loader:
                self.opt.zero_grad(set_to_none=True)
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = torch.nn.functional.cross_entropy(self.net(x.cuda()), y.cuda())
                self.scaler.scale(loss).backward()
                self.scaler.step(self.opt)
                self.scaler.update()
            self.epoch += 1
            torch.save(self.state_dict(), path)
