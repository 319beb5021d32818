# expect: R02
import torch
from torch.nn.functional import mse_loss


class Fitter:
    def __init__(self, net, opt, half):
        self.net, self.opt, self.half = net, opt, half

    def error(self, x, y):
        with torch.autocast("cuda", dtype=torch.float16, enabled=self.half):
            return mse_loss(self.net(x), y)

    def fit(self, batches):
        for x, y in batches:
            self.opt.zero_grad(set_to_none=True)
            error = self.error(x, y)
            error.backward()
            self.opt.step()
