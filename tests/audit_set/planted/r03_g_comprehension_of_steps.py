# expect: R03
import torch
def main(loader, net):
    opt = torch.optim.SGD(net.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda")
    def on_batch(x, y):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = net(x, y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        return float(loss)
    return [on_batch(x, y) for x, y in loader]
