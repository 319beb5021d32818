# expect: none
import torch
class SimpleTrainer:
    pass
class AMPTrainer(SimpleTrainer):
    def __init__(self, model, data_loader, optimizer, grad_scaler=None, precision=torch.float16, log_grad_scaler=False):
        if grad_scaler is None:
            from torch.amp import GradScaler
            grad_scaler = GradScaler("cuda")
        self.model = model
        self.optimizer = optimizer
        self.grad_scaler = grad_scaler
        self.precision = precision
        self.log_grad_scaler = log_grad_scaler
        self._data_loader_iter = iter(data_loader)
        self.zero_grad_before_forward = False
    def run_step(self):
        assert self.model.training
        from torch.amp import autocast
        data = next(self._data_loader_iter)
        if self.zero_grad_before_forward:
            self.optimizer.zero_grad()
        with autocast("cuda", dtype=self.precision):
            loss_dict = self.model(data)
            if isinstance(loss_dict, torch.Tensor):
                losses = loss_dict
            else:
                losses = sum(loss_dict.values())
        if not self.zero_grad_before_forward:
            self.optimizer.zero_grad()
        self.grad_scaler.scale(losses).backward()
        self.grad_scaler.step(self.optimizer)
        self.grad_scaler.update()
    def train(self, n):
        for _ in range(n):
            self.run_step()
    def state_dict(self):
        return {"grad_scaler": self.grad_scaler.state_dict(), "optimizer": self.optimizer.state_dict()}
