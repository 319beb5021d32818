# expect: R27
import torch
def f(model, x):
    with torch.autocast("cuda:0", dtype=torch.float16):
        return model.to("cuda:0")(x)
