# expect: R02
import torch


def step(model, criterion, x, y, optimizer, scaler, precision):
    optimizer.zero_grad(set_to_none=True)
    match precision:
        case "fp16":
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(x), y)
            loss.backward()
            scaler.step(optimizer)
            scaler.update()
        case "bf16":
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        case _:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    return loss
