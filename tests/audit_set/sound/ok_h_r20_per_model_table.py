# expect: none
import torch
SPECS = {
    "encoder": {"inputs": ["image"], "outputs": ["features"], "axes": {"image": {0: "b"}, "features": {0: "b"}}},
    "decoder": {"inputs": ["features"], "outputs": ["mask"], "axes": {"features": {0: "b"}, "mask": {0: "b"}}},
}
def export_all(parts, samples):
    for name, spec in SPECS.items():
        torch.onnx.export(parts[name], samples[name], f"{name}.onnx", input_names=spec["inputs"],
                          output_names=spec["outputs"], dynamic_axes=spec["axes"], opset_version=17, dynamo=False)
