# expect: none
import torch, timm
net = timm.create_model("vit_base_patch16_224").eval().bfloat16().cuda()
torch.onnx.export(net, torch.randn(1, 3, 224, 224).bfloat16().cuda(), "v.onnx", opset_version=13, dynamo=False)
