# expect: R22
import onnx_ir as ir
from onnx_ir.passes.common import ConvertFloatToFloat16Pass
m = ir.load("a.onnx")
ir.save(ConvertFloatToFloat16Pass()(m).model, "b.onnx")
