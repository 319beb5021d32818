# expect: none
import torch


def step(model, batch, optimizer, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        outputs = model(**batch)
    loss = outputs.loss
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
