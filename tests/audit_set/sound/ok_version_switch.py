# expect: none
import torch
from packaging import version

if version.parse(torch.__version__) >= version.parse("2.4"):
    scaler = torch.amp.GradScaler("cuda")
else:
    scaler = torch.cuda.amp.GradScaler()
