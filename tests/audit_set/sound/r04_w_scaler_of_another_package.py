from typing import Optional

from swarm.optim.grad_scaler import GradScaler


def global_step(optimizer, grad_scaler: Optional[GradScaler] = None):
    if grad_scaler is None:
        optimizer.step()
    else:
        with grad_scaler.running_global_step():
            assert grad_scaler.step(optimizer)


class Worker:
    def __init__(self, optimizer):
        self.optimizer, self.scaler = optimizer, GradScaler()

    def step(self):
        if not self.scaler.step(self.optimizer):  # this class returns whether it stepped
            print("skipped")
