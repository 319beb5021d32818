# expect: none
import torch
def train(model0, model1, opt0, opt1, loader, loss_fn):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt0.zero_grad()
        opt1.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            a, b = model0(x), model1(x)
            loss0 = loss_fn(2 * a + 3 * b, y)
            loss1 = loss_fn(3 * a - 5 * b, y)
        scaler.scale(loss0).backward(retain_graph=True)
        scaler.scale(loss1).backward()
        scaler.unscale_(opt0)
        scaler.step(opt0)
        scaler.step(opt1)
        scaler.update()
