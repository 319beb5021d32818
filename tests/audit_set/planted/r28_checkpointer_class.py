# expect: R28
import torch
import torch.nn.functional as F


class Checkpointer:
    def __init__(self, model, optim): self.model, self.optim = model, optim
    def save(self, path, epoch):
        state = dict(epoch=epoch)
        state["model"] = self.model.state_dict()
        state["optim"] = self.optim.state_dict()
        torch.save(state, path)
    def load(self, path):
        ck = torch.load(path)
        self.model.load_state_dict(ck["model"]); self.optim.load_state_dict(ck["optim"])
        return ck["epoch"]
def train(model, opt, loader):
    ck = Checkpointer(model, opt)
    scaler = torch.amp.GradScaler("cuda")
    for ep in range(10):
        for i, (x, y) in enumerate(loader):
            opt.zero_grad()
            with torch.autocast("cuda"):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        ck.save("last.pt", ep)
