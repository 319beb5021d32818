# expect: R28
import torch
import torch.nn.functional as F


class MultiTask:
    def __init__(self, model, aux):
        self.model, self.aux = model.cuda(), aux.cuda()
        self.opt = torch.optim.AdamW(self.model.parameters())
        self.aux_opt = torch.optim.AdamW(self.aux.parameters())
        self.scaler = torch.amp.GradScaler("cuda")

    def losses(self, x, y, use_aux):
        with torch.autocast("cuda", dtype=torch.float16):
            feats = self.model.features(x)
            total = F.cross_entropy(self.model.classify(feats), y)
            if use_aux:
                total = total + 0.4 * F.cross_entropy(self.aux(feats), y)
        return total

    def step(self, x, y, epoch):
        self.opt.zero_grad()
        self.aux_opt.zero_grad()
        loss = self.losses(x, y, use_aux=epoch < 30)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.step(self.aux_opt)
        self.scaler.update()
