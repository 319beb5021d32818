# expect: R14
import torch
class S(torch.cuda.amp.GradScaler):
    pass
