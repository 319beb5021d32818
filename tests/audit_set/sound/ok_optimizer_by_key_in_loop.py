# sound: optimizers in a dict, chosen by key in the loop; update after the loop in the caller
import torch
class Optimizers:
    def __init__(self, opts, norms, params):
        self.opts, self.norms, self.params = opts, norms, params
    def step_some(self, scaler, names):
        for name in names:
            opt = self.opts[name]
            if self.norms[name] is not None:
                scaler.unscale_(opt)
                torch.nn.utils.clip_grad_norm_(self.params[name], self.norms[name])
            scaler.step(opt)
class Trainer:
    def __init__(self, model, opts):
        self.model, self.opts = model, opts
        self.grad_scaler = torch.amp.GradScaler("cuda")
    def iteration(self, batch, names):
        with torch.autocast("cuda"):
            loss = self.model(batch)
        self.grad_scaler.scale(loss).backward()
        self.opts.step_some(self.grad_scaler, names)
        self.grad_scaler.update()
