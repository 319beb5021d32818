import torch
MIN_SCALE = 1.0
def check(scaler):
    if scaler.get_scale() < MIN_SCALE:
        raise FloatingPointError("loss scale below one")
