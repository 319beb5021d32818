import torch


def unscaled(model, optimizer, scaler: torch.amp.GradScaler, loader, log):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        if not torch.isfinite(loss):
            continue
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not torch.isfinite(norm):
            log("skipped")
        scaler.step(optimizer)
        scaler.update()


def lowered(model, optimizer, scaler: torch.amp.GradScaler, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        if any(not torch.isfinite(p.grad).all() for p in model.parameters()):
            scaler.step(optimizer)
            scaler.update()
            continue
        scaler.step(optimizer)
        scaler.update()


def without_scaler(model, optimizer, loader, amp, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        if not amp:
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if torch.isnan(norm):
                continue
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
