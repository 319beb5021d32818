# expect: R22
import onnx
from onnxconverter_common import float16


def to_half(path, out):
    model = onnx.load(path)
    onnx.save(float16.convert_float_to_float16(model, keep_io_types=True), out)
