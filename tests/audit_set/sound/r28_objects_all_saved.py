import torch


def make(cfg):
    objs = {}
    objs["model"] = torch.nn.Linear(16, 4).cuda()
    objs["optim"] = torch.optim.Adam(objs["model"].parameters())
    objs["scaler"] = torch.amp.GradScaler("cuda")
    return objs


def main(cfg, data):
    objs = make(cfg)
    if cfg.resume:
        saved = torch.load(cfg.resume, weights_only=True)
        for k in objs:
            objs[k].load_state_dict(saved[k])
    model, optim, scaler = objs["model"], objs["optim"], objs["scaler"]
    for epoch in range(cfg.epochs):
        for x, y in data:
            optim.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            scaler.scale(loss).backward()
            scaler.step(optim)
            scaler.update()
        torch.save({k: o.state_dict() for k, o in objs.items()}, f"{cfg.out}/{epoch}.pt")
