# expect: R20
import torch

class Base:
    opset = 17

    def extra(self):
        return {}

    def run(self, net, x, path):
        torch.onnx.export(net, x, path, opset_version=self.opset, dynamo=False, **self.extra())

class Ocr(Base):
    def extra(self):
        return dict(dynamic_axes={"image": {0: "n", 3: "w"}})

Ocr().run(torch.nn.Conv2d(3, 8, 3), torch.rand(1, 3, 32, 320), "o.onnx")
