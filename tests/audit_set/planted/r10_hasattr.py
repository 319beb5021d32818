# expect: R10
import torch
def safe(model, ckpt):
    model.load_state_dict(torch.load(ckpt, weights_only=True)["model"])
    for m in model.modules():
        if hasattr(m, "eps"):
            m.eps = max(m.eps, 1e-4)
    return model
