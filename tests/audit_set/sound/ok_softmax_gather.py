import torch


def pick(logits, index):
    with torch.autocast("cuda"):
        p = torch.softmax(logits, -1)
        return p.gather(1, index) / p.sum(dim=1, keepdim=True)
