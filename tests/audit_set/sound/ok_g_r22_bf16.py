# expect: none
from modelopt.onnx.autocast import convert_to_mixed_precision
m = convert_to_mixed_precision(onnx_path="a.onnx", low_precision_type="bf16")
