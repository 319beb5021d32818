# expect: none
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def predict(model, x):
    model = model.to(device)
    with torch.autocast(device_type=device, dtype=torch.bfloat16):
        return model(x.to(device))
