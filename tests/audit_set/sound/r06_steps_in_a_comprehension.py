import torch


class Runner:
    def __init__(self, net, growth_interval=2000):
        self.net = net.cuda()
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cuda", growth_interval=growth_interval)

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    def fit(self, loader, epochs=30):
        for epoch in range(epochs):
            losses = [self.step(x.cuda(), y.cuda()) for x, y in loader]
            print(epoch, sum(losses) / len(losses))
