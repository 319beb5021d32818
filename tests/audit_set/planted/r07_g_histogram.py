# expect: R07
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

from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter()
for step, (x, y) in enumerate(loader):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()
    for n, p in model.named_parameters():
        writer.add_histogram(f'grad/{n}', p.grad, step)
    scaler.step(optimizer)
    scaler.update()
