# expect: R05
import argparse, torch
p = argparse.ArgumentParser()
p.add_argument("--init-scale", type=float, default=2**32)
args = p.parse_args()
scaler = torch.amp.GradScaler("cuda", init_scale=args.init_scale)
