# expect: none
import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.fc = nn.Linear(dim, classes)

    def forward(self, x):
        return F.log_softmax(self.fc(x), dim=-1)


def train(loader, optimizer_cls):
    model = Classifier(128, 10).cuda()
    optimizer = optimizer_cls(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            logp = model(x)
        loss = F.nll_loss(logp, y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
