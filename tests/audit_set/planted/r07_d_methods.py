# expect: R07
import torch
from torch.nn.utils import clip_grad_norm_


class Trainer:
    def __init__(self, cfg, model, opt):
        self.cfg, self.model, self.opt = cfg, model, opt
        self.scaler = torch.amp.GradScaler("cuda")

    def _backward(self, loss):
        self.scaler.scale(loss).backward()

    def _clip(self):
        if self.cfg["max_norm"] > 0:
            clip_grad_norm_(self.model.parameters(), self.cfg["max_norm"])

    def _step(self):
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad(set_to_none=True)

    def train(self, loader, loss_fn):
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = loss_fn(self.model(x), y)
            self._backward(loss)
            self._clip()
            self._step()
