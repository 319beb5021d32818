import copy, torch
from net import Net
def main(loader):
    model = Net().cuda().half()
    master = [p.detach().clone().float().requires_grad_() for p in model.parameters()]
    opt = torch.optim.AdamW(master, lr=1e-3)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x).float(), y)
        (loss * 1024).backward()
        for m, p in zip(master, model.parameters()):
            m.grad = p.grad.float() / 1024
            p.grad = None
        opt.step()
        for m, p in zip(master, model.parameters()):
            p.data.copy_(m.data)
