import torch


def attention(q, k, v, mask):
    with torch.autocast("cuda", dtype=torch.float16):
        s = (q / q.size(-1) ** 0.5) @ k.transpose(-2, -1)
        s = s.masked_fill(~mask, torch.finfo(s.dtype).min)
        return torch.softmax(s, dim=-1) @ v
