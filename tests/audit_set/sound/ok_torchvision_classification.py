import torch
from torch import nn


def train_one_epoch(model, criterion, optimizer, data_loader, device, epoch, args, model_ema=None, scaler=None):
    model.train()
    for i, (image, target) in enumerate(data_loader):
        image, target = image.to(device), target.to(device)
        with torch.amp.autocast("cuda", enabled=scaler is not None):
            output = model(image)
            loss = criterion(output, target)

        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            if args.clip_grad_norm is not None:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad_norm)
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            if args.clip_grad_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad_norm)
            optimizer.step()
        if model_ema and i % args.model_ema_steps == 0:
            model_ema.update_parameters(model)


def main(args, model, criterion, optimizer, lr_scheduler, loader, device):
    scaler = torch.amp.GradScaler("cuda") if args.amp else None
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=True)
        optimizer.load_state_dict(checkpoint["optimizer"])
        if scaler:
            scaler.load_state_dict(checkpoint["scaler"])
    for epoch in range(args.epochs):
        train_one_epoch(model, criterion, optimizer, loader, device, epoch, args, None, scaler)
        lr_scheduler.step()
        checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        if scaler:
            checkpoint["scaler"] = scaler.state_dict()
        torch.save(checkpoint, f"model_{epoch}.pth")
