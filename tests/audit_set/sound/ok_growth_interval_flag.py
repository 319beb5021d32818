import argparse

import torch

p = argparse.ArgumentParser()
p.add_argument("--growth-interval", type=int, default=2000)
p.add_argument("--batch-size", type=int, default=32)
a = p.parse_args()
scaler = torch.amp.GradScaler("cuda", growth_interval=a.growth_interval)
loader = torch.utils.data.DataLoader([], batch_size=a.batch_size)
