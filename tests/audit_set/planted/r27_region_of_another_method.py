# expect: R27
import torch


class Runner:
    def __init__(self, model, lr):
        self.device = torch.device("cuda")
        self.model = model.to(self.device)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.region = torch.autocast("cpu", dtype=torch.bfloat16)

    def loss(self, x, y):
        with self.region:
            return torch.nn.functional.cross_entropy(self.model(x), y)

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(x.to(self.device), y.to(self.device)).backward()
            self.optimizer.step()
