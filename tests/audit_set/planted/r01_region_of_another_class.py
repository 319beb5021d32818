# expect: R01
import torch, torch.nn.functional as F
class Precision:
    def __init__(self, kind):
        self.scaler = torch.amp.GradScaler("cuda")
    def ctx(self):
        return torch.autocast("cuda", dtype=torch.float16)
class Loop:
    def __init__(self, net, opt):
        self.net, self.opt = net, opt
        self.prec = Precision("fp16")
    def run(self, loader):
        for x, y in loader:
            with self.prec.ctx():
                pred = self.net(x)
            loss = F.cross_entropy(pred, y)
            self.prec.scaler.scale(loss).backward()
            self.prec.scaler.step(self.opt); self.prec.scaler.update(); self.opt.zero_grad()
