# expect: R26
import torch
from torchvision.models import resnet50


def load(path):
    model = resnet50()
    model.load_state_dict(torch.load(path, weights_only=True))
    model.eval()
    return model.half().cuda()
