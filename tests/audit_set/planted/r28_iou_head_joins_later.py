# expect: R28
import torch
import torch.nn.functional as F


class Det(torch.nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk = trunk
        self.cls = torch.nn.Linear(64, 10)
        self.iou = torch.nn.Linear(64, 1)

    def forward(self, x):
        h = self.trunk(x)
        iou = self.iou(h)
        return {"logits": self.cls(h), "iou": iou}


class Trainer:
    def __init__(self, trunk):
        self.model = Det(trunk).cuda()
        self.opt = torch.optim.AdamW([*self.model.trunk.parameters(), *self.model.cls.parameters()])
        self.opt_iou = torch.optim.AdamW(self.model.iou.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cuda")
        self.epoch = 0

    def step(self, x, y, t):
        self.opt.zero_grad(set_to_none=True)
        self.opt_iou.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            out = self.model(x)
            loss = F.cross_entropy(out["logits"], y)
            if self.epoch > 4:
                loss = loss + F.mse_loss(out["iou"].squeeze(1).float(), t)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.step(self.opt_iou)
        self.scaler.update()
