# expect: R22
import os
os.system("python -m modelopt.onnx.autocast --onnx_path=a.onnx --output_path=b.onnx --keep_io_types")
