# expect: R19
from torch.onnx import export as onnx_export
import torch.nn as nn
class Job:
    def __init__(self, net: nn.Module, **export_args):
        self.net = net
        self.export_args = export_args
    def run(self, x):
        onnx_export(self.net, (x,), "job.onnx", **self.export_args)
def main(net, x):
    Job(net, opset_version=17, dynamo=True).run(x)
