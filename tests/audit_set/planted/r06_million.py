# expect: R06
import torch
scaler = torch.amp.GradScaler("cuda", init_scale=2**12, growth_interval=10**7)
