# expect: R20
import torch

class Base:
    @property
    def axes(self):
        return None

    def run(self, net, x, path):
        torch.onnx.export(net, x, path, opset_version=17, dynamo=False, input_names=["x"], output_names=["y"],
                          dynamic_axes=self.axes)

class Ocr(Base):
    @property
    def axes(self):
        return {"input": {0: "n"}, "output": {0: "n"}}

Ocr().run(torch.nn.Conv2d(3, 8, 3), torch.rand(1, 3, 32, 320), "o.onnx")
