# expect: R28
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Linear(32, 32)
        self.main = torch.nn.Linear(32, 4)
        self.aux = torch.nn.Linear(32, 4)

    def forward(self, x, with_aux=False):
        h = self.trunk(x).relu()
        if with_aux:
            return self.main(h), self.aux(h)
        return self.main(h), None


def train(loader, epochs):
    model = Model().cuda()
    opt = torch.optim.AdamW([{"params": model.trunk.parameters()}, {"params": model.main.parameters()}])
    opt_aux = torch.optim.AdamW(model.aux.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(epochs):
        use_aux = epoch < 10
        for x, y in loader:
            opt.zero_grad()
            opt_aux.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                main, aux = model(x.cuda(), with_aux=use_aux)
                loss = F.cross_entropy(main, y.cuda())
                if use_aux:
                    loss = loss + 0.3 * F.cross_entropy(aux, y.cuda())
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.step(opt_aux)
            scaler.update()
