import torch
def slim(sd):
    return {k: v.half() if v.is_floating_point() and "running_" not in k else v for k, v in sd.items()}
