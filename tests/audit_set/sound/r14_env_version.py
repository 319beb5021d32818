from myproj.utils import TORCH_2_4
import torch
autocast = torch.amp.autocast if TORCH_2_4 else torch.cuda.amp.autocast
