# expect: R28
import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.seg = torch.nn.Conv2d(16, 5, 1)
        self.edge = torch.nn.Conv2d(16, 1, 1)

    def forward(self, x):
        h = F.relu(self.body(x))
        return self.seg(h), self.edge(h)


def train(loader, epochs=40, edge_from=10):
    net = Net().cuda()
    main_opt = torch.optim.AdamW([*net.body.parameters(), *net.seg.parameters()], lr=1e-3)
    edge_opt = torch.optim.AdamW(net.edge.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(epochs):
        for x, y, e in loader:
            main_opt.zero_grad()
            edge_opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                seg, edge = net(x.cuda())
                loss = F.cross_entropy(seg, y.cuda())
                if epoch >= edge_from:
                    loss = loss + F.binary_cross_entropy_with_logits(edge, e.cuda())
            scaler.scale(loss).backward()
            scaler.step(main_opt)
            scaler.step(edge_opt)
            scaler.update()
