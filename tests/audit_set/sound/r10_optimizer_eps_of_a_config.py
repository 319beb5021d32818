import torch
class H:
    eps = 1e-3
def f(model, path, h=H):
    model.load_state_dict(torch.load(path, weights_only=True))
    opt = torch.optim.AdamW(model.parameters(), eps=h.eps)
    for g in opt.param_groups:
        g["eps"] = 1e-6
