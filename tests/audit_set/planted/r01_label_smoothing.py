# expect: R01
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, optimizer, smoothing=0.1):
        self.model = model
        self.optimizer = optimizer
        self.grad_scaler = torch.amp.GradScaler("cuda")

    def train_step(self, batch):
        x, y = batch
        self.optimizer.zero_grad()
        with torch.autocast(device_type="cuda", dtype=torch.float16):
            features = self.model.backbone(x)
            pred = self.model.head(features)
        loss = F.cross_entropy(pred, y, label_smoothing=0.1)
        self.grad_scaler.scale(loss).backward()
        self.grad_scaler.step(self.optimizer)
        self.grad_scaler.update()
        return loss.item()
