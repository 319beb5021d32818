import torch

class Base:
    def kwargs(self):
        return {"opset_version": 17, "dynamo": False, "input_names": ["input"], "output_names": ["output"]}

    def run(self, net, x, path):
        torch.onnx.export(net, x, path, **self.kwargs())

class Batched(Base):
    def kwargs(self):
        kw = super().kwargs()
        kw["dynamic_axes"] = {"input": {0: "n"}, "output": {0: "n"}}
        return kw

class Renamed(Base):
    def kwargs(self):
        return {**super().kwargs(), "input_names": ["image"], "dynamic_axes": {"image": {0: "n"}, "output": {0: "n"}}}

Batched().run(torch.nn.Conv2d(3, 8, 3), torch.rand(1, 3, 32, 320), "o.onnx")
Renamed().run(torch.nn.Conv2d(3, 8, 3), torch.rand(1, 3, 32, 320), "r.onnx")
