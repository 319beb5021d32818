# expect: R20
import torch.onnx as tonnx


class Exporter:
    def run(self, model, sample):
        tonnx.export(
            model, sample, self.path, opset_version=17, dynamo=False,
            dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
        )
