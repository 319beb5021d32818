# expect: none
import torch
def attn(q, k, mask):
    s = (q.half() @ k.half().transpose(-1, -2)).float()
    return s.masked_fill(mask == 0, -1e9).softmax(-1)
