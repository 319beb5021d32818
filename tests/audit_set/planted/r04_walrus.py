# expect: R04
import torch


class Loop:
    def __init__(self, net, opt):
        self.net, self.opt = net, opt
        self.amp_scaler = torch.amp.GradScaler("cuda")
        self.skipped = 0

    def __call__(self, loader):
        for batch in loader:
            self.opt.zero_grad()
            with torch.autocast("cuda"):
                loss = self.net(batch)
            self.amp_scaler.scale(loss).backward()
            if (ret := self.amp_scaler.step(self.opt)) == None:  # noqa: E711
                self.skipped += 1
            self.amp_scaler.update()
