# expect: none
import torch


def build(model):
    return torch.optim.AdamW(model.parameters(), lr=3e-4, eps=1e-8, weight_decay=1e-2)
