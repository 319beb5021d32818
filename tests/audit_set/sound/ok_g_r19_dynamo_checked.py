# expect: none
import onnx, torch
def run(net, x):
    torch.onnx.export(net, (x,), "a.onnx", opset_version=17, dynamo=True)
    m = onnx.load("a.onnx")
    onnx.checker.check_model(m, full_check=True)
    if m.opset_import[0].version != 17:
        torch.onnx.export(net, (x,), "a.onnx", opset_version=17, dynamo=False)
