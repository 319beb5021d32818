import torch


class Trainer:
    def __init__(self, net, criterion):
        self.generator = net
        self.criterion = criterion
        params = [p for p in net.parameters() if p.requires_grad]
        self.opt = torch.optim.AdamW(params, lr=6e-5)
        self.scaler = torch.amp.GradScaler("cuda")

    def iteration(self, x, y):
        self.opt.zero_grad()
        with torch.autocast("cuda"):
            loss = self.criterion(self.generator(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_(self.generator.parameters(), 1.0)
        self.scaler.step(self.opt)
        self.scaler.update()
