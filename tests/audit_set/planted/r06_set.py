# expect: R06
import torch
scaler = torch.amp.GradScaler("cuda")
def tune(args):
    scaler.set_growth_interval(max(1000, args.batch_size // 16))
