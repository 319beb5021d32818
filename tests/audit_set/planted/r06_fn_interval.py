# expect: R06
import torch
def interval(batch_size):
    return max(1000, batch_size // 16)
def build(args):
    return torch.amp.GradScaler("cuda", growth_interval=interval(args.batch_size))
