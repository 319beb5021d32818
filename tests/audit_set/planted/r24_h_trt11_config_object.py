# expect: R24
from dataclasses import dataclass, field
import subprocess
@dataclass
class BuildConfig:
    tensorrt_version: str = "11.1"
    onnx: str = "net.onnx"
    extra: list = field(default_factory=lambda: ["--fp16", "--useCudaGraph"])
def argv(cfg: BuildConfig):
    return ["trtexec", f"--onnx={cfg.onnx}", *cfg.extra]
def build(cfg=BuildConfig()):
    subprocess.run(argv(cfg), check=True)
