# expect: none
import copy
import torch
class EMA:
    def __init__(self, model, decay=0.999):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay
    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.module.parameters(), model.parameters()):
            e.mul_(self.decay).add_(p.detach(), alpha=1 - self.decay)
def save(ema, model, path):
    torch.save({"ema": copy.deepcopy(ema.module).half(), "model": copy.deepcopy(model).half().state_dict()}, path)
