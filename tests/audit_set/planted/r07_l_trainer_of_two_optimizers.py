# expect: R07
import torch
class Trainer:
    def __init__(self, enc, dec):
        self.enc, self.dec = enc.cuda(), dec.cuda()
        self.build()
        self.scaler = torch.amp.GradScaler('cuda')
    def build(self):
        self.opt_e = torch.optim.AdamW(self.enc.parameters(), lr=1e-4)
        self.opt_d = torch.optim.AdamW(self.dec.parameters(), lr=1e-4)
    def train_step(self, x):
        self.opt_e.zero_grad(); self.opt_d.zero_grad()
        with torch.autocast('cuda', dtype=torch.float16):
            loss = torch.nn.functional.l1_loss(self.dec(self.enc(x)), x)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.opt_d)
        torch.nn.utils.clip_grad_norm_(self.enc.parameters(), 1.0)
        torch.nn.utils.clip_grad_norm_(self.dec.parameters(), 1.0)
        self.scaler.step(self.opt_e); self.scaler.step(self.opt_d)
        self.scaler.update()
