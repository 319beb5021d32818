# expect: R28
import torch


class Trainer:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.scaler = torch.amp.GradScaler("cuda")

    def train_step(self, x, y, loss_fn):
        self.opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_fn(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()

    def state(self):
        state = dict(model=self.model.state_dict(), optimizer=self.opt.state_dict())
        return state

    def save(self, path):
        torch.save(self.state(), path)
