# expect: R28
import torch

SKIP = {"scaler", "loader"}


class Session:
    def __init__(self, model, loader):
        self.model = model.cuda()
        self.loader = loader
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.scaler = torch.amp.GradScaler("cuda")

    def dump(self, path):
        blob = {}
        for name, value in self.__dict__.items():
            if name in SKIP:
                continue
            if hasattr(value, "state_dict"):
                blob[name] = value.state_dict()
        torch.save(blob, path)

    def train(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = torch.nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.dump("session.pt")
