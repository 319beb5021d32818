# expect: none
import torch
import numpy as np
class Trainer:
    def _setup(self, amp):
        self.scaler = torch.amp.GradScaler("cuda", enabled=amp)
        self.amp = amp
    def optimizer_step(self):
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=10.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        if self.ema:
            self.ema.update(self.model)
    def train(self, nb, nw):
        last_opt_step = -1
        self.optimizer.zero_grad()
        for epoch in range(self.epochs):
            for i, batch in enumerate(self.loader):
                ni = i + nb * epoch
                if ni <= nw:
                    self.accumulate = max(1, int(np.interp(ni, [0, nw], [1, 8])))
                with torch.amp.autocast("cuda", enabled=self.amp):
                    self.loss, self.loss_items = self.model(batch)
                self.scaler.scale(self.loss).backward()
                if ni - last_opt_step >= self.accumulate:
                    self.optimizer_step()
                    last_opt_step = ni
            self.scheduler.step()
