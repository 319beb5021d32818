# expect: R24
import subprocess
ROOT = "/usr/local/TensorRT-11.2.0.5"
def build(onnx, plan, precision):
    flag = "--fp16" if precision == "fp16" else "--int8"
    subprocess.check_call([f"{ROOT}/bin/trtexec", "--onnx", onnx, "--saveEngine", plan, flag])
