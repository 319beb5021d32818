# expect: R09
import torch
def nll(model, x, y):
    with torch.autocast('cuda', dtype=torch.float16):
        p = torch.sigmoid(model(x))
        return -(y * torch.log(p + 1e-8)).mean()
