import torch


def forward(model, x, device):
    x = x.to(device)
    enabled = device.type == "cuda"
    with torch.autocast(device_type=device.type, dtype=torch.float16 if enabled else torch.bfloat16, enabled=enabled):
        return model(x)
