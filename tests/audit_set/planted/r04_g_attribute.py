# expect: R04
import torch
class T:
    def __init__(self): self.scaler = torch.amp.GradScaler("cuda")
    def optimizer_step(self):
        self.last_ret = self.scaler.step(self.opt)
        self.scaler.update()
    def after(self):
        if self.last_ret is not None:
            self.sched.step()
