# expect: R14
import torch.cuda.amp as amp
scaler = amp.GradScaler()
