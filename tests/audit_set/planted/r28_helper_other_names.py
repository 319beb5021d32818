# expect: R28
import os
import torch
from torch.amp import GradScaler, autocast
from net import Restorer, total_loss

LOAD = True
PATH = "weights/last.pth"


def train():
    D = Restorer().cuda()
    optimizer_D = torch.optim.Adam(D.parameters(), lr=5e-5)
    start = 1
    if LOAD:
        D, optimizer_D, start = load_checkpoint(D, optimizer_D, PATH)
    scaler = GradScaler("cuda")
    for epoch in range(start, 500):
        for images, labels in loader:
            optimizer_D.zero_grad()
            with autocast("cuda"):
                out = D(images.cuda())
                loss = total_loss(out, labels.cuda())
            if not torch.isnan(loss):
                scaler.scale(loss).backward()
                scaler.step(optimizer_D)
                scaler.update()
            else:
                continue
        save_checkpoint(D, optimizer_D, epoch, PATH)


def save_checkpoint(model, optimizer, epoch, path):
    state = {
        "epoch": epoch,
        "model_state_dict": model.state_dict(),
        "optimizer_state_dict": optimizer.state_dict(),
    }
    torch.save(state, path)


def load_checkpoint(model, optimizer, path):
    if os.path.isfile(path):
        ck = torch.load(path)
        model.load_state_dict(ck["model_state_dict"])
        optimizer.load_state_dict(ck["optimizer_state_dict"])
        return model, optimizer, ck["epoch"]
