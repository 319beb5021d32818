# expect: R08
import torch


def train(model, loader, lr):
    model = model.to("cuda", dtype=torch.float16)
    opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    for ids, labels in loader:
        loss = model(ids, labels=labels).loss
        loss.backward()
        opt.step()
        opt.zero_grad()
