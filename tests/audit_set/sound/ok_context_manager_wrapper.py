# expect: none
import contextlib
import torch
import torch.nn.functional as F
def amp_context(enabled, dtype):
    return torch.autocast("cuda", dtype=dtype) if enabled else contextlib.nullcontext()
def train(model, loader, optimizer, enabled):
    scaler = torch.amp.GradScaler("cuda", enabled=enabled)
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        with amp_context(enabled, torch.float16):
            out = model(x)
            loss = F.cross_entropy(out, y, label_smoothing=0.1)
        acc = (out.argmax(1) == y).float().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield loss.item(), acc.item()
