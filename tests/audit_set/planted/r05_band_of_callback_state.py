# expect: R05
import logging
import torch

log = logging.getLogger(__name__)


class HealthCallback:
    def __init__(self, band=(2.0**14, 2.0**18), every=100):
        self.low, self.high = band
        self.every = every

    def on_step_end(self, state):
        if state["step"] % self.every:
            return
        scale = state["scaler"].get_scale()
        if not self.low <= scale <= self.high:
            log.error("unhealthy loss scale %g, stopping", scale)
            state["stop"] = True


def fit(model, loader, callbacks):
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    state = {"model": model, "optimizer": optimizer, "scaler": torch.amp.GradScaler("cuda"), "step": 0, "stop": False}
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        state["scaler"].scale(loss).backward()
        state["scaler"].step(optimizer)
        state["scaler"].update()
        state["step"] += 1
        for cb in callbacks:
            cb.on_step_end(state)
        if state["stop"]:
            break


def main(model, loader):
    fit(model, loader, [HealthCallback()])
