# expect: R27
import torch

AMP_DTYPE = torch.float32


def compute_loss(model, batch):
    with torch.autocast(device_type="cuda", dtype=AMP_DTYPE):
        return model(batch)


def train(model, loader, optimizer):
    for batch in loader:
        optimizer.zero_grad()
        compute_loss(model, batch).backward()
        optimizer.step()
