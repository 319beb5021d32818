import torch


def train_step(model, criterion, x, y, optimizer, scaler, precision):
    optimizer.zero_grad(set_to_none=True)
    match precision:
        case "fp16":
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        case "bf16":
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        case _:
            criterion(model(x), y).backward()
            optimizer.step()
