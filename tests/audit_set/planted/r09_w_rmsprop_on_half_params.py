# expect: R09
import torch
import torch.nn as nn

model = nn.Linear(4, 4).cuda().half()
opt = torch.optim.RMSprop(model.parameters(), lr=1e-3, eps=1e-8)
for x, y in loader:
    loss = (model(x.half()).float() - y).pow(2).mean()
    loss.backward(); opt.step(); opt.zero_grad()
