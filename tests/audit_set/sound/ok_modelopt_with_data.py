# expect: none
import onnx
from modelopt.onnx.autocast import convert_to_mixed_precision

mixed = convert_to_mixed_precision(onnx_path="model.onnx", low_precision_type="fp16", calibration_data="calibration.npz")
onnx.save(mixed, "model.fp16.onnx")
