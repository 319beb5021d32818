# expect: none
import torch, timm
student = timm.create_model("vit_tiny_patch16_224").eval()
teacher = timm.create_model("vit_base_patch16_224").eval().half()
torch.onnx.export(student, torch.randn(1, 3, 224, 224), "v.onnx", opset_version=13, dynamo=False)
