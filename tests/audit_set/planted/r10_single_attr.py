# expect: R10
import torch
from torchvision.models import resnet50
net = resnet50(weights="DEFAULT")
net.bn1.eps = 1e-3
net.layer1[0].bn1.eps = 1e-3
