# expect: R06
import torch
kw = {}
kw["growth_interval"] = 16
scaler = torch.amp.GradScaler("cuda", **kw)
