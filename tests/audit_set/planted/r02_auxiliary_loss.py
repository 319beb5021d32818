# expect: R02
import torch
from torch.amp import GradScaler as Scaler


def train_step(model, aux_head, batch, optimizer, gs: Scaler):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        feats, loss = model(batch)
        aux_loss = aux_head(feats)
    gs.scale(loss).backward(retain_graph=True)
    (0.4 * aux_loss).backward()
    gs.step(optimizer)
    gs.update()


def main(model, aux_head, loader, optimizer):
    gs = Scaler("cuda")
    for batch in loader:
        train_step(model, aux_head, batch, optimizer, gs)
