# expect: R27
import torch
from net import Net
model = Net().to("xpu")
def f(x):
    with torch.autocast("cuda"):
        return model(x.to("xpu"))
