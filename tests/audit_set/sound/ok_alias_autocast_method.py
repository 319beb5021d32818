import torch


class Base:
    def autocast(self):
        return torch.autocast("cuda", dtype=self.dtype, enabled=self.dtype != torch.float32)

    def train_step(self, batch):
        self.optimizer.zero_grad()
        with self.autocast():
            loss = self.compute_loss(batch)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
