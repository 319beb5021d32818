# expect: R06
import torch
def make(train_loader):
    steps = len(train_loader)
    interval = steps // 2
    return torch.amp.GradScaler("cuda", growth_interval=interval)
