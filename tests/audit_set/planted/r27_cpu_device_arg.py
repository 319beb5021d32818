# expect: R27
import torch


def evaluate(model, loader):
    model.cuda().eval()
    out = []
    with torch.no_grad():
        for x in loader:
            with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
                out.append(model(x.cuda()))
    return out
