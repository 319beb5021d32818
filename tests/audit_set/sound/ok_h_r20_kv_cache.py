# expect: none
import torch
N = 4
def io():
    ins = ["input_ids", "attention_mask"]
    outs = ["logits"]
    for i in range(N):
        ins += [f"past_key_{i}", f"past_value_{i}"]
        outs.extend([f"present_key_{i}", f"present_value_{i}"])
    return ins, outs
def axes_for(ins, outs):
    axes = {}
    for n in ins + outs:
        axes[n] = {0: "batch"}
    return axes
def main(net, args):
    ins, outs = io()
    torch.onnx.export(net, args, "lm.onnx", input_names=ins, output_names=outs, dynamic_axes=axes_for(ins, outs), dynamo=False, opset_version=17)
