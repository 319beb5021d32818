# expect: R08
import torch
from shop.nets import Big, Small

BUILDERS = {"small": lambda: Small().half(), "big": lambda: Big().half()}

def train(loader, size="small"):
    net = BUILDERS[size]().cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
