import torch
import torch.nn.functional as F


def train(backbone, head, loader, epochs, unfreeze_at=5):
    for p in backbone.parameters():
        p.requires_grad = False
    opt_body = torch.optim.SGD(backbone.parameters(), lr=1e-3)
    opt_head = torch.optim.SGD(head.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(epochs):
        if epoch == unfreeze_at:
            for p in backbone.parameters():
                p.requires_grad = True
        for x, y in loader:
            opt_body.zero_grad()
            opt_head.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(head(backbone(x.cuda())), y.cuda())
            scaler.scale(loss).backward()
            scaler.step(opt_head)
            if epoch >= unfreeze_at:
                scaler.step(opt_body)
            scaler.update()
