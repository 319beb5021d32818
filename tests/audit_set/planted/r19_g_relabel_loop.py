# expect: R19
import onnx
m = onnx.load("a.onnx")
for o in m.opset_import:
    if o.domain == "":
        o.version = 13
onnx.save(m, "b.onnx")
