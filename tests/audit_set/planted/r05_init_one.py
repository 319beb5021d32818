# expect: R05
import torch
scaler = torch.amp.GradScaler("cuda", init_scale=1.0)
