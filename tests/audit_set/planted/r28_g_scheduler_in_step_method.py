# expect: R28
import torch
from transformers import get_cosine_schedule_with_warmup
class T:
    def __init__(self, m, opt, n):
        self.m, self.opt = m, opt
        self.lr_sched = get_cosine_schedule_with_warmup(opt, 100, n)
        self.scaler = torch.amp.GradScaler("cuda")
    def step(self, x):
        self.opt.zero_grad()
        self.scaler.scale(self.m(x)).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
        self.lr_sched.step()
