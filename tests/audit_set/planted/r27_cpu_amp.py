# expect: R27
import torch
device = torch.device("cuda:0")
def f(model, x, y):
    model.to(device)
    x = x.to(device)
    with torch.autocast(device_type="cpu"):
        return model(x)
