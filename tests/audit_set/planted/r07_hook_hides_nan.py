# expect: R07
import torch


class NanGuard:
    def __init__(self, module):
        self.handles = [p.register_hook(self._clean) for p in module.parameters() if p.requires_grad]

    @staticmethod
    def _clean(grad):
        return torch.nan_to_num(grad, nan=0.0, posinf=0.0, neginf=0.0)


def train(model, loader):
    model = model.cuda()
    NanGuard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
