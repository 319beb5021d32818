import torch
def attn(q, k, mask):
    s = q @ k.t()
    s = s.masked_fill(mask, torch.finfo(s.dtype).min)
    tiny = torch.finfo(torch.float16).tiny
    return torch.softmax(s, -1).clamp(min=tiny)
