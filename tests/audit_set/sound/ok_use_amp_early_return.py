import torch


class Updater:
    def __init__(self, model, optimizer, amp):
        self.model, self.optimizer = model, optimizer
        self.scaler = torch.amp.GradScaler("cuda") if amp else None

    def __call__(self, loss):
        self.optimizer.zero_grad()
        if self.scaler is None:
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            return
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
