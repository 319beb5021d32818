# expect: R21
import torch, torchvision
net = torchvision.models.swin_t(weights="DEFAULT").eval().half().cuda()
torch.onnx.export(net, torch.randn(1, 3, 224, 224).half().cuda(), "swin.onnx", opset_version=14, dynamo=False)
