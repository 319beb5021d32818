# expect: R28
import torch
from project.base import Agent


class Learner(Agent):
    def __init__(self, policy, settings):
        super().__init__(settings)
        self.policy = policy
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=settings.lr)
        self.scaler = torch.amp.GradScaler("cuda", enabled=settings.amp)
        self.checkpoint_modules["policy"] = policy
        self.checkpoint_modules["optimizer"] = self.optimizer

    def update(self, x, y):
        with torch.autocast("cuda", enabled=self.settings.amp):
            loss = torch.nn.functional.mse_loss(self.policy(x), y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
