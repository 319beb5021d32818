# expect: R01
import torch

def train(model, x, y, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        logits = model(x)
    logp = torch.log_softmax(logits, dim=-1)
    loss = -logp.gather(1, y[:, None]).mean()
    scaler.scale(loss).backward()
