# expect: R22
import subprocess
subprocess.check_call(["python", "-m", "onnxruntime.transformers.optimizer", "--input", "a.onnx", "--output", "b.onnx", "--float16"])
