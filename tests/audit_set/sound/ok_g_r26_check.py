import torch
def check(m):
    for n, b in m.named_buffers():
        if n.endswith("running_var") and not torch.isfinite(b.half()).all():
            print(n, "overflows")
