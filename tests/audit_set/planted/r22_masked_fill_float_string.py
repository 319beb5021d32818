# expect: R22
import torch


def attention(q, k, v, mask):
    with torch.autocast("cuda", dtype=torch.float16):
        scores = (q * q.size(-1) ** -0.5) @ k.transpose(-2, -1)
        scores = scores.masked_fill_(~mask, float("-1e9"))
        return scores.softmax(-1) @ v
