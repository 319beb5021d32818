# expect: R22
import onnx
from modelopt.onnx.autocast import convert_to_mixed_precision

mixed = convert_to_mixed_precision(onnx_path="model.onnx", low_precision_type="fp16")
onnx.save(mixed, "model.fp16.onnx")
