# expect: R11
import torch.nn.functional as F


def nll(logits, y):
    probs = F.softmax(logits, dim=-1)
    picked = probs.gather(1, y[:, None]).squeeze(1)
    return -picked.log().mean()
