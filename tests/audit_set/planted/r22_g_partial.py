# expect: R22
from functools import partial
import onnx
from onnxconverter_common.float16 import convert_float_to_float16
to16 = partial(convert_float_to_float16, keep_io_types=True)
onnx.save(to16(onnx.load("a.onnx")), "b.onnx")
