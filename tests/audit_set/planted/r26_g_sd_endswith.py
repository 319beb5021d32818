# expect: R26
import torch
def slim(sd):
    out = {}
    for k, v in sd.items():
        if k.endswith("running_var") or k.endswith("running_mean"):
            out[k] = v.half()
        else:
            out[k] = v
    return out
