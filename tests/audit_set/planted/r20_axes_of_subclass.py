# expect: R20
import abc
import torch

class Base(abc.ABC):
    names_in = ["input"]
    names_out = ["output"]

    def axes(self):
        return {n: {0: "batch"} for n in self.names_in + self.names_out}

    def run(self, net, x, path):
        torch.onnx.export(net, x, path, opset_version=17, dynamo=False, input_names=self.names_in,
                          output_names=self.names_out, dynamic_axes=self.axes())

class Plain(Base):
    pass

class Speech(Base):
    names_in = ["fbank"]

    def axes(self):
        return {"feats": {0: "batch", 1: "t"}, "output": {0: "batch"}}

Plain().run(torch.nn.Linear(3, 8), torch.rand(1, 3), "o.onnx")
Speech().run(torch.nn.Linear(3, 8), torch.rand(1, 3), "o.onnx")
