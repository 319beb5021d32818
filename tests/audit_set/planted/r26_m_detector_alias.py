# expect: R26
import torch
import torch.nn as nn
from torchvision.models.detection import fasterrcnn_resnet50_fpn as frcnn
from accelerate import Accelerator
model = frcnn(weights="DEFAULT")
model = model.half() if torch.cuda.is_available() else model
