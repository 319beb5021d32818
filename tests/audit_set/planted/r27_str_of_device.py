# expect: R27
import torch

device = torch.device("cuda:0")


def predict(model, x):
    with torch.no_grad(), torch.autocast(device_type=str(device), dtype=torch.bfloat16):
        return model(x.to(device))
