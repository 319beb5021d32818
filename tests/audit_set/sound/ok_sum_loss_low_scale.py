import torch


def train(model, loader, optimizer):
    ce = torch.nn.CrossEntropyLoss(reduction="sum")
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**8)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = ce(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print("scale", scaler.get_scale())
