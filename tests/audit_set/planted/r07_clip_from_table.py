# expect: R07
import torch


def by_norm(model, value):
    torch.nn.utils.clip_grad_norm_(model.parameters(), value)


def by_value(model, value):
    torch.nn.utils.clip_grad_value_(model.parameters(), value)


CLIPPERS = {"norm": by_norm, "value": by_value}


def train(model, loader, mode="norm", value=1.0):
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    clip = CLIPPERS[mode]
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        clip(model, value)
        scaler.step(optimizer)
        scaler.update()
