# expect: none
import torch
def _export(net, args, path, **options):
    torch.onnx.export(net, args, path, opset_version=17, dynamo=False, **options)
def export_text(net, path):
    _export(net, (torch.zeros(1, 8, dtype=torch.long),), path, input_names=["ids"], output_names=["emb"],
            dynamic_axes={"ids": {0: "b", 1: "t"}, "emb": {0: "b"}})
def export_image(net, path):
    _export(net, (torch.zeros(1, 3, 8, 8),), path, input_names=["image"], output_names=["embedding"],
            dynamic_axes={"image": {0: "b"}, "embedding": {0: "b"}})
