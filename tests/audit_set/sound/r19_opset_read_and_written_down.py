import json

import onnx
import torch


def save(net, sample, path, opset=17):
    torch.onnx.export(net.eval(), (sample,), path, input_names=["x"], output_names=["y"], opset_version=opset)
    onnx.checker.check_model(onnx.load(path))
    with open(f"{path}.json", "w") as file:
        json.dump({"opset": max(o.version for o in onnx.load(path).opset_import), "inputs": ["x"]}, file)
