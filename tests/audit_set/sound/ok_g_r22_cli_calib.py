# expect: none
import subprocess, sys
subprocess.run([sys.executable, "-m", "modelopt.onnx.autocast", "--onnx_path", "a.onnx", "--output_path", "b.onnx", "--calibration_data", "c.npz"], check=True)
