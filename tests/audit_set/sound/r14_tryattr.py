import torch
try:
    s = torch.amp.GradScaler("cuda")
except AttributeError:
    s = torch.cuda.amp.GradScaler()
