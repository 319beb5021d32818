# expect: R20
import torch

class Base:
    def kwargs(self):
        return {"opset_version": 17, "dynamo": False}

    def run(self, net, x, path):
        torch.onnx.export(net, x, path, **self.kwargs())

class Ocr(Base):
    def kwargs(self):
        kw = super().kwargs()
        kw["dynamic_axes"] = {"image": {0: "n"}, "output": {0: "n"}}
        return kw

Ocr().run(torch.nn.Conv2d(3, 8, 3), torch.rand(1, 3, 32, 320), "o.onnx")
