import torch


def scaled(run, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = run.net(**batch).loss
    run.scaler.scale(loss).backward()
    return loss.detach()


def plain(run, batch):
    loss = run.net(**batch).loss
    loss.backward()
    return loss.detach()


def apply_scaled(run):
    run.scaler.unscale_(run.opt)
    torch.nn.utils.clip_grad_norm_(run.net.parameters(), 1.0)
    run.scaler.step(run.opt)
    run.scaler.update()
    run.opt.zero_grad(set_to_none=True)


def apply_plain(run):
    torch.nn.utils.clip_grad_norm_(run.net.parameters(), 1.0)
    run.opt.step()
    run.opt.zero_grad(set_to_none=True)


def loop(run, loader, step_fn, apply_fn):
    for batch in loader:
        total = step_fn(run, batch)
        apply_fn(run)
        print(total)


def main(run, loader, amp):
    run.opt = torch.optim.AdamW(run.net.parameters())
    if amp:
        run.scaler = torch.amp.GradScaler("cuda")
        loop(run, loader, scaled, apply_scaled)
    else:
        loop(run, loader, plain, apply_plain)
