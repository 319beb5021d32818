import torch
def prep(model, fp16):
    if fp16:
        return model.half()
    return model.float()
