# expect: R20
from dataclasses import dataclass
import torch
@dataclass
class IOSpec:
    inputs: list
    outputs: list
    axes: dict
SPECS = [
    IOSpec(["mel"], ["audio"], {"mel": {0: "b", 2: "frames"}, "audio": {0: "b"}}),
    IOSpec(["text"], ["mel"], {"tokens": {0: "b"}, "mel": {0: "b"}}),
]
def export_all(models, samples):
    for model, sample, spec in zip(models, samples, SPECS):
        torch.onnx.export(model, sample, f"{spec.outputs[0]}.onnx", input_names=spec.inputs, output_names=spec.outputs,
                          dynamic_axes=spec.axes, opset_version=17, dynamo=False)
