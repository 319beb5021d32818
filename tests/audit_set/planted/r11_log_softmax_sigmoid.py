# expect: R11
import torch
import torch.nn.functional as F


def policy_loss(logits, actions, advantage):
    probs = F.softmax(logits, dim=-1)
    logp = torch.log(probs).gather(1, actions)
    return -(logp * advantage).mean()
