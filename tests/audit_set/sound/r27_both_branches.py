import torch
def ctx(device):
    if device == "cpu":
        return torch.autocast("cpu", dtype=torch.bfloat16)
    return torch.autocast("cuda", dtype=torch.float16)
