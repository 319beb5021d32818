# expect: R26
import torch
sd = torch.load("resnet50.pth")
for k in list(sd):
    sd[k] = sd[k].half()
assert "layer1.0.bn1.running_var" in sd
torch.save(sd, "small.pth")
