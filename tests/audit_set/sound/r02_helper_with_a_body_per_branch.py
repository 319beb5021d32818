import torch
from torch.nn.functional import mse_loss


class Engine:
    def __init__(self, net, opt, scaler: torch.amp.GradScaler | None = None):
        self.net, self.opt, self.scaler = net, opt, scaler

    def run(self, batches):
        if self.scaler is None:

            def enlarged(value):
                return value

        else:

            def enlarged(value):
                return self.scaler.scale(value)

        for x, y in batches:
            self.opt.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.float16):
                loss = mse_loss(self.net(x), y)
            enlarged(loss).backward()
            if self.scaler is None:
                self.opt.step()
            else:
                self.scaler.step(self.opt)
                self.scaler.update()
