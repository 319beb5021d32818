# expect: R26
import torch
from torchvision import models


def load(path):
    model = models.mobilenet_v3_large(weights=None)
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return model.eval().cuda().half()
