# expect: R08
import torch


def main(build, loader, criterion):
    model = build().to("cuda", dtype=torch.float16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x.cuda().half()).float(), y.cuda())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
