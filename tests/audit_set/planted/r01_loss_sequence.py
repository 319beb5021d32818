# expect: R01
import torch
import torch.nn as nn


def train(model, loader, optimizer, scaler):
    ctc = nn.CTCLoss(zero_infinity=True)
    for x, y, n, m in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.device(0), torch.autocast(device_type="cuda", dtype=torch.float16):
            logits = model(x)
        loss = ctc(logits.transpose(0, 1), y, n, m)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
