# expect: none
import onnx
from modelopt.onnx import autocast
def options(a):
    o = {"keep_io_types": True, "low_precision_type": "fp16"}
    if a.calib:
        o["calibration_data"] = a.calib
    return o
def main(a):
    onnx.save(autocast.convert_to_mixed_precision(a.onnx, **options(a)), a.out)
