# expect: R06
import torch
from torch import optim


def main(args, model, loader):
    optimizer = optim.SGD(model.parameters(), lr=args.lr)
    scaler = torch.amp.GradScaler("cuda", init_scale=2**12, growth_interval=20)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
