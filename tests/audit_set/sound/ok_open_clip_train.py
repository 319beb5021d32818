import torch


def backward(total_loss, scaler):
    if scaler is not None:
        scaler.scale(total_loss).backward()
    else:
        total_loss.backward()


def train_one_epoch(model, data, loss, epoch, optimizer, scaler, scheduler, args):
    autocast = torch.amp.autocast if args.amp else torch.no_grad
    for i, batch in enumerate(data):
        if not args.skip_scheduler:
            scheduler(i)
        images, texts = batch
        optimizer.zero_grad()
        with torch.amp.autocast("cuda", dtype=torch.float16):
            out = model(images, texts)
            total_loss = sum(loss(**out).values())
        backward(total_loss, scaler)
        if scaler is not None:
            if args.grad_clip_norm is not None:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip_norm, norm_type=2.0)
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
