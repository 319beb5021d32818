import torch


class LARS(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                dp = p.grad
                if dp is None:
                    continue
                norm = torch.norm(p)
                update_norm = torch.norm(dp)
                q = torch.where(update_norm > 0, g["trust_coefficient"] * norm / update_norm, torch.ones_like(norm))
                p.add_(dp.mul(q), alpha=-g["lr"])


def main(model, loader, criterion):
    opt = LARS(model.parameters(), {})
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
