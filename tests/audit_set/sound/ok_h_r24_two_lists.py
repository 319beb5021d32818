# expect: none
import json
import subprocess
COMMON = ["--skipInference", "--exportLayerInfo=info.json"]
FAST = COMMON + ["--profilingVerbosity=" + "detailed"]
def build(onnx):
    subprocess.run(["trtexec", "--onnx=" + onnx] + FAST, check=True)
def fp32_layers():
    return [l for l in json.load(open("info.json"))["Layers"] if "FP32" in str(l)]
