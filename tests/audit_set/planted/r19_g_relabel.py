# expect: R19
import onnx, torch
def main(net, x):
    torch.onnx.export(net, (x,), "a.onnx", opset_version=18, dynamo=True)
    m = onnx.load("a.onnx")
    m.opset_import[0].version = 17
    onnx.save(m, "a17.onnx")
