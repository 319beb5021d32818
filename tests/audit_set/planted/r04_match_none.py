# expect: R04
from torch.amp import GradScaler, autocast


class Loop:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.scaler = GradScaler("cuda")

    def one(self, x, y, loss_fn):
        self.opt.zero_grad()
        with autocast("cuda"):
            loss = loss_fn(self.model(x), y)
        self.scaler.scale(loss).backward()
        result = self.scaler.step(self.opt)
        self.scaler.update()
        match result:
            case None:
                self.opt.zero_grad()
                print("overflow, step skipped")
