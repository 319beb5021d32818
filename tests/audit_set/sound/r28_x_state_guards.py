import torch
from torch.amp.grad_scaler import OptState


class ByStage:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.scaler = torch.amp.GradScaler("cuda")

    def unscale(self):
        state = self.scaler._per_optimizer_states[id(self.optimizer)]
        if state["stage"] is OptState.READY:
            self.scaler.unscale_(self.optimizer)

    def step(self, x, y):
        self.optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.unscale()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.unscale()
        torch.nn.utils.clip_grad_value_(self.model.parameters(), 0.5)
        self.scaler.step(self.optimizer)
        self.scaler.update()


class ByTable:
    def __init__(self, model, optimizers):
        self.model, self.optimizers = model, optimizers
        self.scaler = torch.amp.GradScaler("cuda")
        self.ready = {}

    def unscale(self, optimizer):
        if not self.ready.get(optimizer, False):
            self.scaler.unscale_(optimizer)
            self.ready[optimizer] = True

    def step(self, x, y, optimizer):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.unscale(optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.unscale(optimizer)
        self.scaler.step(optimizer)
        self.scaler.update()
        self.ready.clear()
