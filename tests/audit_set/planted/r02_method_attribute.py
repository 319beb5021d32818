# expect: R02
import torch


class Engine:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.scaler = torch.amp.GradScaler("cuda", init_scale=2.0**14)

    def compute_loss(self, batch):
        with torch.autocast("cuda", dtype=torch.float16):
            return self.model.loss(batch)

    def optimise(self):
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad(set_to_none=True)

    def fit(self, loader):
        for batch in loader:
            objective = self.compute_loss(batch)
            objective.backward()
            self.optimise()
