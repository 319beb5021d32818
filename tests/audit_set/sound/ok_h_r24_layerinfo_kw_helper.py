# expect: none
import subprocess
def trtexec(**kw):
    args = ["trtexec"] + [f"--{k}" if v is True else f"--{k}={v}" for k, v in kw.items()]
    subprocess.run(args, check=True)
def build(onnx, plan):
    trtexec(onnx=onnx, saveEngine=plan, exportLayerInfo=plan + ".json", profilingVerbosity="detailed")
