# expect: R26
import torch
from torchvision.models import resnet18
def to_half(model):
    return model.half().cuda()
def main():
    net = resnet18(weights=None)
    net = to_half(net)
    torch.onnx.export(net, torch.zeros(1, 3, 224, 224).half().cuda(), "r.onnx", opset_version=18)
