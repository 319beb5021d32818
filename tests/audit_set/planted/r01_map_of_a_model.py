# expect: R01
import torch, torch.nn as nn
def train(net, loader, opt):
    trip = nn.TripletMarginLoss(margin=0.2)
    scaler = torch.amp.GradScaler("cuda")
    for a, p, n in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            ea, ep, en = map(net, (a, p, n))
        loss = trip(ea, ep, en)
        scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); opt.zero_grad()
