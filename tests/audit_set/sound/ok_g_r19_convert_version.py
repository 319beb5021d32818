# expect: none
import onnx
from onnx import version_converter
m = version_converter.convert_version(onnx.load("a.onnx"), 17)
assert m.opset_import[0].version == 17
onnx.checker.check_model(m, full_check=True)
onnx.save(m, "b.onnx")
