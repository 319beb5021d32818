# expect: R03
import torch
from accelerate import Accelerator
def update(accelerator, loss, model, opt, sched):
    accelerator.backward(loss)
    if accelerator.sync_gradients:
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
def main(model, opt, sched, loader):
    accelerator = Accelerator(mixed_precision='fp16')
    model, opt, sched, loader = accelerator.prepare(model, opt, sched, loader)
    for x, y in loader:
        update(accelerator, torch.nn.functional.mse_loss(model(x), y), model, opt, sched)
