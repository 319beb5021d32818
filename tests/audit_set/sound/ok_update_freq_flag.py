# expect: none
import torch
def train(model, loader, optimizer, update_freq):
    scaler = torch.amp.GradScaler("cuda")
    optimizer.zero_grad()
    for step, batch in enumerate(loader):
        do_step = (step + 1) % update_freq == 0
        with torch.autocast("cuda"):
            loss = model(batch) / update_freq
        scaler.scale(loss).backward()
        if do_step:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if do_step:
            scaler.step(optimizer)
            scaler.update()
        if do_step:
            optimizer.zero_grad()
