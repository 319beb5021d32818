import torch
def resume(path, scaler):
    ck = torch.load(path, weights_only=True)
    scaler.update(new_scale=ck["loss_scale"])
