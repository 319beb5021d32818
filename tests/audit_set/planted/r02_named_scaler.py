# expect: R02
import torch


def fit(net, data, opt, loss_fn):
    amp_scaler = torch.amp.GradScaler("cuda")
    for a, b in data:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            out = loss_fn(net(a), b)
        out.backward()
        amp_scaler.step(opt)
        amp_scaler.update()
