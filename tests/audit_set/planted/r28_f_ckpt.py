# expect: R28
import torch


def fit(model, opt, loader, f, path):
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(3):
        for x, y in loader:
            opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = f(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        ckpt = {"epoch": epoch}
        ckpt["model"] = model.state_dict()
        ckpt["opt"] = opt.state_dict()
        torch.save(ckpt, path)
