# expect: none
import subprocess, tensorrt as trt
MAJOR = int(trt.__version__.split(".")[0])
def build(onnx, plan, half_onnx):
    cmd = ["trtexec", f"--saveEngine={plan}"]
    if MAJOR >= 11:
        cmd.append(f"--onnx={half_onnx}")
    else:
        cmd += [f"--onnx={onnx}", "--fp16"]
    subprocess.run(cmd, check=True)
