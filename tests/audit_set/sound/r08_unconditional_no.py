import argparse, torch
from net import Net
p = argparse.ArgumentParser()
p.add_argument("--half-eval", action="store_true")
args = p.parse_args()
model = Net().cuda()
if args.half_eval:
    model.half()
    print(model(torch.randn(1, 3, device="cuda").half()))
    raise SystemExit
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cuda")
