# expect: R25
import torch
def cast(model, dtype):
    for p in model.parameters():
        p.data = p.data.to(dtype)
    return model
def main(model):
    cast(model, torch.float16)
    bench(model)
    cast(model, torch.float32)
    fit(model)
