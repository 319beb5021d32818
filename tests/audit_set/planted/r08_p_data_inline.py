# expect: R08
import torch
from net import Net
def main(loader):
    model = Net().cuda()
    for p in model.parameters():
        p.data = p.data.to(torch.float16)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            l = model(x).mean()
        scaler.scale(l).backward()
        scaler.step(opt)
        scaler.update()
