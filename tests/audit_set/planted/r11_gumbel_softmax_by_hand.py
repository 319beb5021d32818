# expect: R11
import torch


def route(logits, temperature):
    with torch.autocast("cuda", dtype=torch.float16):
        scaled = logits / temperature
        numerator = torch.exp(scaled)
        denominator = numerator.sum(dim=-1, keepdim=True)
        return numerator / denominator
