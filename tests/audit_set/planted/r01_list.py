# expect: R01
import torch, torch.nn.functional as F
def f(model, xs, ys, opt, scaler):
    preds = []
    with torch.autocast("cuda", dtype=torch.float16):
        for x in xs:
            preds.append(model(x))
    loss = 0
    for p, y in zip(preds, ys):
        loss = loss + F.cross_entropy(p, y)
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
