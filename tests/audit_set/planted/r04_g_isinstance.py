# expect: R04
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_


def make_model():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).cuda()


model = make_model()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")
loader = torch.utils.data.DataLoader(range(10))

for x, y in loader:
    scaler.scale(criterion(model(x), y)).backward()
    out = scaler.step(optimizer)
    scaler.update()
    if isinstance(out, type(None)):
        print("skipped")
    optimizer.zero_grad()
