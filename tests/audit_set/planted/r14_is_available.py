# expect: R14
from transformers.utils import is_torch_available
import torch
ok = is_torch_available()
scaler = torch.cuda.amp.GradScaler()
