# expect: R22
import torch
def attn(q, k, mask):
    with torch.autocast("cuda", dtype=torch.float16):
        s = torch.matmul(q, k.transpose(-1, -2))
        s = s + (1.0 - mask.half()) * -1e9
        return s.softmax(-1)
