# expect: R20
import lightning.pytorch as pl
import torch
def main(m: pl.LightningModule):
    m.to_onnx("a.onnx", torch.randn(1, 4), input_names=["x"], output_names=["y"], dynamic_axes={"input": {0: "batch"}, "y": {0: "batch"}})
