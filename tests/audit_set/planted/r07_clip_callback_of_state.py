# expect: R07
import torch


class State(dict):
    __getattr__ = dict.__getitem__


class ClipCallback:
    def __init__(self, max_norm=1.0):
        self.max_norm = max_norm

    def before_step(self, state):
        torch.nn.utils.clip_grad_norm_(state["model"].parameters(), self.max_norm)


def run(model, loader):
    model = model.cuda()
    state = dict(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        scaler=torch.amp.GradScaler("cuda"),
    )
    hooks = [ClipCallback(0.5)]
    for x, y in loader:
        state["optimizer"].zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(state["model"](x.cuda()), y.cuda())
        state["scaler"].scale(loss).backward()
        for h in hooks:
            h.before_step(state)
        state["scaler"].step(state["optimizer"])
        state["scaler"].update()
