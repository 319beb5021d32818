# expect: R09
import torch

EPS = 1e-10


def cosine(a, b):
    a, b = a.half(), b.half()
    num = (a * b).sum(-1)
    den = (a.norm(dim=-1) * b.norm(dim=-1)).clamp(min=EPS)
    return num / den
