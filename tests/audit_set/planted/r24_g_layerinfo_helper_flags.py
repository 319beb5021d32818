# expect: R24
import subprocess
from pathlib import Path
def flags(onnx: Path, engine: Path):
    out = ["--onnx=" + str(onnx)]
    out.append("--saveEngine=" + str(engine))
    out.append(f"--exportLayerInfo={engine}.graph.json")
    return out
def build(onnx, engine):
    subprocess.check_call(["trtexec"] + flags(onnx, engine))
