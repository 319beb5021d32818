# expect: none
import subprocess


def build(onnx_path, extra):
    command = [
        "trtexec",
        f"--onnx={onnx_path}",
        "--stronglyTyped",
        "--exportLayerInfo=layers.json",
        "--profilingVerbosity=detailed",
    ]
    subprocess.run(command + extra, check=True)
    subprocess.run(["trtexec", "--loadEngine=model.engine", "--dumpProfile"], check=True)
