# expect: R09
import torch, torch.nn.functional as F
def embed(model, x):
    with torch.autocast('cpu', dtype=torch.float16):
        h = F.linear(x, model.weight)
        return F.normalize(h, dim=-1)
