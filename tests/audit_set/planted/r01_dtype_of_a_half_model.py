# expect: R01
import torch, torch.nn.functional as F
@torch.no_grad()
def ev(model, loader):
    model.half()
    for x, y in loader:
        with torch.autocast("cuda", dtype=model.dtype):
            o = model(x)
        print(F.cross_entropy(o, y, reduction="sum"))
