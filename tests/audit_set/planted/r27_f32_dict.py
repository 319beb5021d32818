# expect: R27
import torch
DT = {"fp32": torch.float32, "fp16": torch.float16}
AMP = "fp32"
def f(model, x):
    with torch.autocast("cuda", dtype=DT[AMP], enabled=True):
        return model(x)
