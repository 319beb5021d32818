# expect: none
import torch


def train(args, model, loader, criterion, optimizer):
    scaler = torch.amp.GradScaler("cuda") if args.amp else None
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled=args.amp):
            loss = criterion(model(x), y)
        if args.amp:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if args.clip_grad_norm is not None:
            if args.amp:
                scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad_norm)
        if args.amp:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
