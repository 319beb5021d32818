# expect: R05
import torch

scaler = torch.amp.GradScaler("cuda")


def monitor(writer, step):
    current = scaler.get_scale()
    writer.add_scalar("amp/scale", current, step)
    assert 2.0**16 <= current <= 2.0**18, "scale is out of the healthy range"
