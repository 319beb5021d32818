# expect: R26
import torch
m = torch.hub.load("pytorch/vision", "resnet18", pretrained=True)
m.eval().to("cuda", torch.float16)
