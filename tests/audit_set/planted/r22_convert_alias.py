# expect: R22
import onnx
from onnxconverter_common.float16 import convert_float_to_float16 as to_half


def convert(src, dst):
    onnx.save(to_half(onnx.load(src), keep_io_types=True), dst)
