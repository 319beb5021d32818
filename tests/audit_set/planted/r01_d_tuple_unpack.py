# expect: R01
import torch
import torch.nn.functional as F


def train(model, loader, opt):
    ctx = torch.autocast("cuda", dtype=torch.bfloat16)
    for x, y in loader:
        with ctx:
            main, aux = model(x)
        loss = F.cross_entropy(main, y) + 0.4 * F.cross_entropy(aux, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
