# expect: R22
import onnx
from onnxconverter_common import float16
onnx.save(float16.convert_float_to_float16(onnx.load("a.onnx"), op_block_list=[]), "b.onnx")
