import torch
from torch import autocast
from contextlib import nullcontext


class nnUNetTrainer:
    def __init__(self, network, device):
        self.network, self.device = network, device
        self.grad_scaler = torch.amp.GradScaler("cuda") if self.device.type == "cuda" else None
        self.optimizer = torch.optim.SGD(network.parameters(), 1e-2, momentum=0.99, nesterov=True)

    def train_step(self, batch):
        data, target = batch["data"].to(self.device, non_blocking=True), batch["target"]
        self.optimizer.zero_grad(set_to_none=True)
        with autocast(self.device.type, enabled=True) if self.device.type == "cuda" else nullcontext():
            output = self.network(data)
            l = self.loss(output, target)
        if self.grad_scaler is not None:
            self.grad_scaler.scale(l).backward()
            self.grad_scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 12)
            self.grad_scaler.step(self.optimizer)
            self.grad_scaler.update()
        else:
            l.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 12)
            self.optimizer.step()
        return {"loss": l.detach().cpu().numpy()}
