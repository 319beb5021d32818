# expect: none
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.05)
    def forward(self, x, y=None):
        logits = self.head(torch.relu(self.backbone(x)))
        if y is None:
            return logits
        return logits, self.loss(logits, y)
def train(loader):
    model = Model().cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            _, loss = model(x, y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
