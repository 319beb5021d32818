# expect: R26
import torch
from torchvision.models import resnet18, resnet50
MODELS = {"r18": resnet18, "r50": resnet50}
def build(name):
    m = MODELS[name](num_classes=5)
    m.eval()
    return m.half().to("cuda")
