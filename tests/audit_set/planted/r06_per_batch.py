# expect: R06
import torch
class C:
    batch_size = 32
scaler = torch.amp.GradScaler("cuda", growth_interval=2000 // C.batch_size)
