# expect: none
import subprocess, tensorrt as trt
assert trt.__version__.startswith("10."), "TensorRT 11 dropped --fp16"
subprocess.run(["trtexec", "--onnx=a.onnx", "--fp16"])
