# expect: R27
import torch
from net import Net
def main(loader):
    device = "mps"
    model = Net().to(device)
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for x in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x.to(device)).mean()
        loss.backward()
        opt.step()
