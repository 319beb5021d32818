# expect: R27
import torch

AMP_DTYPE = torch.float32


def forward(model, batch):
    with torch.autocast(device_type="cuda", dtype=AMP_DTYPE):
        return model(batch)
