# expect: none
import onnx
m = onnx.load("a.onnx")
op = m.opset_import.add(); op.domain = "com.microsoft"; op.version = 1
onnx.save(m, "b.onnx")
