# expect: R22
import subprocess, sys
subprocess.run([sys.executable, "-m", "modelopt.onnx.autocast", "--onnx_path", "a.onnx", "--output_path", "b.onnx", "--low_precision_type", "fp16"], check=True)
