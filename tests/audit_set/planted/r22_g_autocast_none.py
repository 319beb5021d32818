# expect: R22
from modelopt.onnx.autocast import convert_to_mixed_precision
import onnx
def lower(src, dst, data=None):
    m = convert_to_mixed_precision(onnx_path=src, low_precision_type="fp16", calibration_data=data)
    onnx.save(m, dst)
lower("a.onnx", "b.onnx")
