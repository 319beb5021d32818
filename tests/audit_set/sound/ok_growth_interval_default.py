# expect: none
import torch


def build(args):
    return torch.amp.GradScaler("cuda", init_scale=2.0**args.log2_scale, growth_interval=2000)
