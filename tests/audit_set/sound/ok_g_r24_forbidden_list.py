# expect: none
"""TensorRT 11 wrapper."""
import subprocess
GONE = ("--fp16", "--int8", "--best", "--precisionConstraints")
def run(args):
    bad = [a for a in args if a.startswith(GONE)]
    if bad:
        raise ValueError(f"TensorRT 11 has no {bad}")
    subprocess.run(["trtexec", *args], check=True)
