# expect: R25
import torch
def run(model, tl, vl, opt, crit, epochs):
    for e in range(epochs):
        model.float().train()
        for x, y in tl:
            opt.zero_grad(); crit(model(x), y).backward(); opt.step()
        model.half().eval()
        with torch.no_grad():
            print(sum((model(x.half()).argmax(1) == y).sum() for x, y in vl))
