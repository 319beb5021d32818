# expect: R20
import torch
def export(m, x, f, seg):
    out = ["dets"]
    axes = {"images": {0: "batch"}}
    axes.update({"dets": {0: "batch"}, "protos": {0: "batch"}})
    torch.onnx.export(m, x, f, input_names=["images"], output_names=out, dynamic_axes=axes)
