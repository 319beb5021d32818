# expect: R24
import subprocess
FLAGS = {"loadEngine": "a.plan", "dumpProfile": None, "iterations": 20}
def to_cli(flags):
    return [f"--{k}" if v is None else f"--{k}={v}" for k, v in flags.items()]
out = subprocess.run(["trtexec", *to_cli(FLAGS)], capture_output=True, text=True).stdout
half = [l for l in out.splitlines() if "Half" in l]
