# expect: R02
from accelerate import Accelerator
import torch
accelerator = Accelerator(mixed_precision="no")
scaler = torch.amp.GradScaler("cuda")
def run(model, opt, loader):
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y)
        accelerator.backward(loss)
        scaler.step(opt)
        scaler.update()
