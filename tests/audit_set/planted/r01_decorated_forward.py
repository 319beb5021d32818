# expect: R01
import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self, backbone, width, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(width, classes)

    @torch.autocast("cuda", dtype=torch.float16)
    def forward(self, x):
        return self.head(self.backbone(x))


def fit(backbone, loader, epochs):
    model = Classifier(backbone, 512, 1000).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(epochs):
        for x, y in loader:
            logits = model(x.cuda())
            loss = F.cross_entropy(logits, y.cuda())
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
