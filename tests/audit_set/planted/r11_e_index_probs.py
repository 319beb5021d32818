# expect: R11
import torch


def reinforce(policy, states, actions, returns):
    probs = torch.softmax(policy(states), dim=-1)
    chosen = probs[torch.arange(len(actions)), actions]
    return -(torch.log(chosen) * returns).mean()
