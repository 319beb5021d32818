# expect: R06
from functools import partial
import torch
mk = partial(torch.amp.GradScaler, "cuda", growth_interval=25)
scaler = mk()
