import torch, torch.nn.functional as F
def ev(model, loader, opt, device):
    model.float()
    for x, y in loader:
        with torch.autocast(device.type, dtype=next(model.parameters()).dtype):
            o = model(x)
        loss = F.cross_entropy(o, y)
        loss.backward(); opt.step(); opt.zero_grad()
