# expect: R26
import torch
import torchvision
import deepspeed
model = torchvision.models.resnet50()
engine = deepspeed.init_inference(model, dtype=torch.half)
