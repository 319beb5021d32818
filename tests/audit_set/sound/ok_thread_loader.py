import threading

import torch


def prefetch(queue, loader):
    for batch in loader:
        queue.put(batch)


def train(model, criterion, loader, queue, opt, scaler):
    t = threading.Thread(target=prefetch, args=(queue, loader), daemon=True)
    t.start()
    for _ in range(100):
        x, y = queue.get()
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
