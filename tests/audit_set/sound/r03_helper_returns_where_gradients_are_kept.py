from contextlib import nullcontext

import torch
from torch import nn


class Session:
    def __init__(self, net, frozen=False, keep_grads=False):
        self.net, self.frozen, self.keep_grads = net, frozen, keep_grads
        self.opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cuda")

    def clear(self):
        if self.keep_grads:
            return
        self.opt.zero_grad(set_to_none=True)

    def forward_and_back(self, x, y):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.mse_loss(self.net(x), y)
        self.scaler.scale(loss).backward()
        return loss.detach()

    def learn(self, batches):
        for x, y in batches:
            with torch.inference_mode() if self.frozen else nullcontext():
                self.clear()
                self.forward_and_back(x, y)
                self.scaler.step(self.opt)
                self.scaler.update()
