import torch


def backward(loss, scaler):
    (scaler.scale(loss) if scaler is not None else loss).backward()


def epoch(net, loader, opt, scaler, limit):
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16 if scaler is not None else torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        backward(loss, scaler)
        if scaler is not None:
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(net.parameters(), limit)
            scaler.step(opt)
            scaler.update()
        else:
            torch.nn.utils.clip_grad_norm_(net.parameters(), limit)
            opt.step()


def main(net, loader, opt, amp):
    epoch(net, loader, opt, torch.amp.GradScaler("cuda") if amp else None, 1.0)
