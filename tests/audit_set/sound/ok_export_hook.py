import torch

class Base:
    def extra(self):
        return {}

    def run(self, net, x, path):
        torch.onnx.export(net, x, path, opset_version=17, dynamo=False, **self.extra())

class Ocr(Base):
    def extra(self):
        return {"input_names": ["image"], "output_names": ["text"], "dynamic_axes": {"image": {0: "n"}, "text": {0: "n"}}}

class Fixed(Base):
    pass

Ocr().run(torch.nn.Conv2d(3, 8, 3), torch.rand(1, 3, 32, 320), "o.onnx")
