# expect: R11
import torch


def softmax(x, dim=-1):
    num = x.exp()
    den = torch.sum(num, dim, keepdim=True)
    return num / den


@torch.autocast("cuda")
def attend(q, k, v):
    return softmax(torch.matmul(q, k.mT)) @ v
