import torch


def train(build, loader, criterion):
    model = build().to("cuda", torch.bfloat16)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, eps=1e-8)
    for x, y in loader:
        opt.zero_grad()
        loss = criterion(model(x.to(torch.bfloat16)).float(), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
