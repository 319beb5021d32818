# expect: none
import torch


def attention(scores, mask):
    scores = scores.float().masked_fill(mask == 0, -1e9)
    return scores.softmax(-1)
