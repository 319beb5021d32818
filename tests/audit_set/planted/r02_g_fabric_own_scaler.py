# expect: R02
import torch
from lightning.fabric import Fabric
fabric = Fabric(accelerator="cuda")
net = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
net, opt = fabric.setup(net, opt)
scaler = torch.amp.GradScaler("cuda")
def train(loader):
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(net(x), y)
        fabric.backward(loss)
        scaler.step(opt)
        scaler.update()
