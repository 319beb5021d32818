import torch
class Pair(torch.nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second
def build():
    head = torch.nn.Linear(8, 4).cuda()
    pair = Pair(torch.nn.Linear(8, 8).cuda(), head)
    return pair, head, torch.optim.AdamW(pair.parameters(), lr=1e-3)
def train(loader):
    pair, head, opt = build()
    scaler = torch.amp.GradScaler('cuda')
    for x in loader:
        opt.zero_grad()
        with torch.autocast('cuda', dtype=torch.float16):
            loss = head(pair.first(x)).float().pow(2).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
