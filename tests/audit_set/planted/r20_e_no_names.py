# expect: R20
import torch

opts = dict(opset_version=17, dynamic_axes={"x": {0: "b"}}, dynamo=False)


class Exporter:
    def __init__(self, model):
        self.model = model

    def __call__(self, sample, path):
        torch.onnx.export(self.model, sample, path, **opts)
