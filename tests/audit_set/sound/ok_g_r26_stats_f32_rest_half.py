import torch
def pack(net):
    out = {}
    for name, t in net.state_dict().items():
        if name.endswith(("running_mean", "running_var")):
            out[name] = t.float()
        elif t.is_floating_point():
            out[name] = t.half()
        else:
            out[name] = t
    return out
