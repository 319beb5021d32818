# expect: R14
import torch
print("torch", torch.__version__, "cuda", torch.version.cuda)
scaler = torch.cuda.amp.GradScaler()
