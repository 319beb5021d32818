# expect: R20
import torch
N = 4
def main(net, args):
    ins, outs = ["input_ids"], ["logits"]
    axes = {"input_ids": {0: "batch"}, "logits": {0: "batch"}}
    for i in range(N):
        ins += [f"past_key_{i}", f"past_value_{i}"]
        outs.extend([f"present_key_{i}", f"present_value_{i}"])
        axes[f"past_key_{i}"] = {0: "batch", 2: "seq"}
        axes[f"past_values_{i}"] = {0: "batch", 2: "seq"}
    torch.onnx.export(net, args, "lm.onnx", input_names=ins, output_names=outs, dynamic_axes=axes, dynamo=False, opset_version=17)
