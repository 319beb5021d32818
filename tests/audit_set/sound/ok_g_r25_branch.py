import torch
def prep(model, fp16):
    if fp16:
        model.half()
    else:
        model.float()
    return model
