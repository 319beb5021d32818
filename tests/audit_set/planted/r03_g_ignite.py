# expect: R03
import torch
from ignite.engine import Engine
def make(model, opt, loss_fn):
    scaler = torch.amp.GradScaler("cuda")
    def train_step(engine, batch):
        x, y = batch
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        return loss.item()
    return Engine(train_step)
