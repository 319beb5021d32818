import torch
scaler = torch.amp.GradScaler("cuda", growth_interval=5, enabled=False)
