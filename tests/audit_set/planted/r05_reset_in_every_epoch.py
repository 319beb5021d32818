# expect: R05
import torch
class Trainer:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.reset_amp()
    def reset_amp(self):
        self.scaler = torch.amp.GradScaler("cuda")
    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.reset_amp()
            for x in loader:
                with torch.autocast("cuda"):
                    loss = self.model(x).mean()
                self.scaler.scale(loss).backward(); self.scaler.step(self.opt); self.scaler.update(); self.opt.zero_grad()
