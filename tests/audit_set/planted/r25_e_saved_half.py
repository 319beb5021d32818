# expect: R25
import torch


def save(model, path):
    torch.save(model.half().state_dict(), path)
    model.float()
    return model
