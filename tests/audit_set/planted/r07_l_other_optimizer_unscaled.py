# expect: R07
import torch
def nets(): return torch.nn.Linear(8, 8).cuda(), torch.nn.Linear(8, 4).cuda()
def optimizers(first, second, lr=1e-3):
    return torch.optim.AdamW(first.parameters(), lr=lr), torch.optim.AdamW(second.parameters(), lr=lr)
def train(loader):
    a, b = nets()
    opt_a, opt_b = optimizers(a, b)
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        opt_a.zero_grad(); opt_b.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = b(a(x)).float().pow(2).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(opt_a)
        torch.nn.utils.clip_grad_norm_(b.parameters(), 1.0)
        scaler.step(opt_a); scaler.step(opt_b)
        scaler.update()
