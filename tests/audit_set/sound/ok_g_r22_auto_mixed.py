# expect: none
import onnx
from onnxconverter_common import auto_mixed_precision
m = auto_mixed_precision.auto_convert_mixed_precision(onnx.load("a.onnx"), {"x": None}, rtol=0.01, atol=0.001, keep_io_types=True)
onnx.save(m, "b.onnx")
