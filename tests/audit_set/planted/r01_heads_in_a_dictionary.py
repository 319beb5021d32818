# expect: R01
import torch
import torch.nn as nn
import torch.nn.functional as F


class Ranker(nn.Module):
    def __init__(self, dim, tasks):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(dim, 64), nn.ReLU())
        self.heads = nn.ModuleDict({task: nn.Linear(64, 1) for task in tasks})

    def forward(self, x):
        h = self.bottom(x)
        return {task: head(h).squeeze(1) for task, head in self.heads.items()}


def fit(loader, weights):
    model = Ranker(32, list(weights)).cuda()
    opt = torch.optim.Adagrad(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            out = model(x.cuda())
        total = 0.0
        for task, w in weights.items():
            logit = out[task]
            target = y[task].cuda().to(logit.dtype)
            total = total + w * F.binary_cross_entropy_with_logits(logit, target, reduction="sum")
        opt.zero_grad()
        scaler.scale(total).backward()
        scaler.step(opt)
        scaler.update()
