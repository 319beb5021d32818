# expect: R06
import torch

SCALER = dict(init_scale=2.0**13, growth_factor=2.0, growth_interval=10)


def build(model, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", **SCALER)
    return optimizer, scaler
