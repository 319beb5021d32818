# expect: R20
import torch
class Exporter:
    def __init__(self, net):
        self.net = net
        self.in_names = ["src"]
        self.out_names = ["tgt"]
        self.axes = {"src": {0: "b"}, "out": {0: "b"}}
    def run(self, x, path):
        torch.onnx.export(self.net, (x,), path, input_names=self.in_names, output_names=self.out_names, dynamic_axes=self.axes)
