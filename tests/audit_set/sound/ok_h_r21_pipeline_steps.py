# expect: none
import subprocess
import torch
import timm
class Pipeline:
    def __init__(self, arch="swin_tiny_patch4_window7_224", opset=13):
        self.net = timm.create_model(arch, pretrained=True).eval()
        self.opset = opset
        self.onnx = f"{arch}.onnx"
    def export(self):
        torch.onnx.export(self.net, torch.randn(1, 3, 224, 224), self.onnx, opset_version=self.opset, dynamo=False)
    def engine_cmd(self):
        return ["trtexec", f"--onnx={self.onnx}", "--noTF32"]
    def run(self):
        self.export()
        subprocess.run(self.engine_cmd(), check=True)
