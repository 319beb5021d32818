# expect: none
import torch
class OnnxConfig:
    @property
    def inputs(self):
        return {"input_ids": {0: "batch", 1: "seq"}, "attention_mask": {0: "batch", 1: "seq"}}
    @property
    def outputs(self):
        return {"logits": {0: "batch"}}
def export(net, args, cfg: OnnxConfig):
    torch.onnx.export(net, args, "t.onnx", input_names=list(cfg.inputs), output_names=list(cfg.outputs),
                      dynamic_axes={**cfg.inputs, **cfg.outputs}, opset_version=17, dynamo=False)
