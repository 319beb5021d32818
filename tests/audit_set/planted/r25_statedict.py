# expect: R25
import torch
def shrink(model):
    sd = {k: v.half().float() for k, v in model.state_dict().items()}
    model.load_state_dict(sd)
