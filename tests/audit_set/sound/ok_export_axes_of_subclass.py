import torch

class Base:
    names_in = ["input"]
    names_out = ["output"]

    def axes(self):
        return {}

    def run(self, net, x, path):
        torch.onnx.export(net, x, path, opset_version=17, dynamo=False, input_names=self.names_in,
                          output_names=self.names_out, dynamic_axes=self.axes() or None)

class Speech(Base):
    names_in = ["fbank"]

    def axes(self):
        return {"fbank": {0: "batch", 1: "t"}, "output": {0: "batch"}}

class Text(Base):
    names_in = ["ids"]
    names_out = ["logits"]

    def axes(self):
        return {"ids": {0: "batch"}, "logits": {0: "batch"}}

Speech().run(torch.nn.Linear(3, 8), torch.rand(1, 3), "o.onnx")
