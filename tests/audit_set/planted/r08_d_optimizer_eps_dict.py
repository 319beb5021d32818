# expect: R08, R09
import torch

cfg = dict(lr=1e-4, eps=1e-8)
model = torch.nn.Linear(4, 4).cuda().half()
opt = torch.optim.AdamW(model.parameters(), **cfg)
