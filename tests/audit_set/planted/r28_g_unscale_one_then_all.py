# expect: R28
import torch
def grad_norm(scaler, opt, model):
    scaler.unscale_(opt)
    return torch.stack([p.grad.norm() for p in model.parameters()]).norm()
def train(model, opts, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        for o in opts: o.zero_grad()
        scaler.scale(model(x)).backward()
        print(grad_norm(scaler, opts[0], model))
        for o in opts:
            scaler.unscale_(o)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(o)
        scaler.update()
