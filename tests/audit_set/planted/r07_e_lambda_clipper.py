# expect: R07
import torch

clipper = lambda params: torch.nn.utils.clip_grad_norm_(params, 5.0)


def train(model, opt, loader, loss_fn):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        clipper(model.parameters())
        scaler.step(opt)
        scaler.update()
