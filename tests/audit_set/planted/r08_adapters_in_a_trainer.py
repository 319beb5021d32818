# expect: R08
import torch
from torch import nn
class Lora(nn.Module):
    def __init__(self, base, r=4):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, r); self.up = nn.Linear(r, base.out_features)
def inject(model):
    for name, m in list(model.named_modules()):
        if isinstance(m, nn.Linear):
            parent = model.get_submodule(name.rpartition(".")[0])
            setattr(parent, name.rpartition(".")[2], Lora(m))
class Trainer:
    def __init__(self, model):
        self.model = model.requires_grad_(False)
        inject(self.model)
        self.model.to("cuda", torch.float16)
        self.opt = torch.optim.AdamW([p for p in self.model.parameters() if p.requires_grad], lr=1e-3)
    def step(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x.half()).float(), y)
        self.opt.zero_grad(); loss.backward(); self.opt.step()
