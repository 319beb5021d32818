# expect: none
import copy

import torch


def rounding_error(model, x):
    half = {k: v.half() for k, v in model.state_dict().items()}
    other = copy.deepcopy(model)
    other.load_state_dict({k: v.float() for k, v in half.items()})
    with torch.no_grad():
        return (model(x) - other(x)).abs().max()
