# expect: R25
import torch


def simulate_amp(model):
    with torch.no_grad():
        for p in model.parameters():
            p.data = p.data.half().float()
    return model
