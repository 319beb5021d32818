# expect: R19
import torch
class Settings:
    def __init__(self, device="orin"):
        self.device = device
    @property
    def opset(self):
        return 17
class Pipe:
    def __init__(self, settings):
        self.settings = settings
    def export(self, net, x):
        torch.onnx.export(net, (x,), "p.onnx", dynamo=True, opset_version=self.settings.opset)
def main(net, x):
    Pipe(Settings()).export(net, x)
