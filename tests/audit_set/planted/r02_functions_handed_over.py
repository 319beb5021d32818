# expect: R02
import torch


def forward_backward(run, batch):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = run.net(**batch).loss
    loss.backward()
    return loss.detach()


def apply(run):
    run.scaler.step(run.opt)
    run.scaler.update()
    run.opt.zero_grad(set_to_none=True)


def loop(run, loader, step_fn, apply_fn):
    for batch in loader:
        total = step_fn(run, batch)
        if apply_fn(run):
            print(total)


def main(run, loader):
    run.scaler = torch.amp.GradScaler("cuda")
    run.opt = torch.optim.AdamW(run.net.parameters())
    loop(run, loader, forward_backward, apply)
