# expect: R20
from collections import OrderedDict

import torch

IO = OrderedDict(inputs=["image"], outputs=["logits"], dynamic={"input": {0: "n"}, "output": {0: "n"}})


def export(net, out):
    torch.onnx.export(
        net, torch.zeros(1, 3, 64, 64), out, dynamo=False,
        input_names=IO["inputs"], output_names=IO["outputs"], dynamic_axes=IO["dynamic"],
    )  # fmt: skip
