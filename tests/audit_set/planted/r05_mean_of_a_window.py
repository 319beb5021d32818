# expect: R05
import numpy as np
import torch
def train(model, loader, opt):
    scaler = torch.amp.GradScaler("cuda")
    scales = []
    for x in loader:
        with torch.autocast("cuda"):
            loss = model(x).mean()
        scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); opt.zero_grad()
        scales.append(scaler.get_scale())
    if np.mean(scales[-100:]) < 16384:
        raise ValueError("unstable mixed precision run")
