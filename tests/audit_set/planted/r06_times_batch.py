# expect: R06
import argparse

import torch
from torch.amp import GradScaler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    interval = 32 * args.batch_size
    scaler = GradScaler("cuda", growth_interval=interval)
    return scaler, torch.backends.cudnn.benchmark
