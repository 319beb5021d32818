import torch
GS = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
s = GS()
