# expect: none
import torch
import torch.nn.functional as F


def attend(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def cosine_attention(q, k, v, tau):
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    return ((q @ k.transpose(-2, -1)) * tau.sqrt()).softmax(-1) @ v
