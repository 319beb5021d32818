# expect: none
import torch
import torch.nn.functional as F
def train(model, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10)
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            logits = model(x)
            loss = F.cross_entropy(logits, y, reduction="sum")
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(float(scaler.get_scale()), logits.float().abs().max().item())
