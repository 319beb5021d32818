import torch

class Base:
    def customise(self, options):
        pass

    def run(self, net, x, path):
        options = {"opset_version": 17, "dynamo": False}
        self.customise(options)
        torch.onnx.export(net, x, path, **options)

class Ocr(Base):
    def customise(self, options):
        options["input_names"] = ["image"]
        options["output_names"] = ["text"]
        options["dynamic_axes"] = {"image": {0: "n", 3: "w"}}

Ocr().run(torch.nn.Conv2d(3, 8, 3), torch.rand(1, 3, 32, 320), "o.onnx")
