import torch


class Clipper:
    def __init__(self, opt, scaler):
        self.opt, self.scaler = opt, scaler

    def __call__(self):
        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_([p for g in self.opt.param_groups for p in g["params"]], 1.0)


def fit(g, d, loader):
    opt_g = torch.optim.AdamW(g.parameters())
    opt_d = torch.optim.AdamW(d.parameters())
    scaler = torch.amp.GradScaler("cuda")
    clip_g, clip_d = Clipper(opt_g, scaler), Clipper(opt_d, scaler)
    for x in loader:
        opt_g.zero_grad()
        opt_d.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = d(g(x.cuda())).mean()
        scaler.scale(loss).backward()
        clip_g()
        clip_d()
        scaler.step(opt_g)
        scaler.step(opt_d)
        scaler.update()
