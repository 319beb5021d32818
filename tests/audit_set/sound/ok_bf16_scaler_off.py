# expect: none
import torch

dtype = torch.bfloat16
scaler = torch.amp.GradScaler("cuda", enabled=(dtype == torch.float16))


def train(model, loader, optimizer):
    for batch in loader:
        with torch.autocast("cuda", dtype=dtype):
            loss = model(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
