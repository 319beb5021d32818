# expect: R26
import timm
import torch

model = timm.create_model("resnet50", pretrained=True).eval().cuda().half()
with torch.inference_mode():
    out = model(torch.zeros(1, 3, 224, 224, device="cuda", dtype=torch.half))
