# expect: R28
import torch
import torch.nn.functional as F


def save(path, **objs):
    torch.save({k: v.state_dict() for k, v in objs.items()}, path)
def train(model, opt, sched, loader):
    scaler = torch.amp.GradScaler("cuda")
    for ep in range(10):
        for i, (x, y) in enumerate(loader):
            opt.zero_grad()
            with torch.autocast("cuda"):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        sched.step()
        save("last.pt", model=model, optimizer=opt, scheduler=sched)
