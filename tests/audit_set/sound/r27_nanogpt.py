import torch
from contextlib import nullcontext
dtype = "bfloat16"
device = "cuda"
device_type = "cuda" if "cuda" in device else "cpu"
ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[dtype]
ctx = nullcontext() if device_type == "cpu" else torch.amp.autocast(device_type=device_type, dtype=ptdtype)
def f(model, x):
    with ctx:
        return model(x)
