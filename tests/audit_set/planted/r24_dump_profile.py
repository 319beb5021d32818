# expect: R24
import subprocess


def profile(onnx_path):
    out = subprocess.run(
        ["trtexec", f"--onnx={onnx_path}", "--fp16", "--dumpProfile", "--separateProfileRun"], capture_output=True, text=True
    ).stdout
    return [line for line in out.splitlines() if "kFLOAT" in line]
