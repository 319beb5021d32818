# expect: R24
import subprocess, tensorrt as trt
if not trt.__version__.startswith("11."):
    raise SystemExit("needs TensorRT 11")
PRECISION = {"fp32": [], "fp16": ["--fp16"], "int8": ["--int8", "--fp16"]}
def build(onnx, plan, p="fp16"):
    subprocess.run(["trtexec", f"--onnx={onnx}", f"--saveEngine={plan}", *PRECISION[p]], check=True)
