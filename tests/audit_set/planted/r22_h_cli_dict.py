# expect: R22
import shlex
import subprocess
OPTIONS = {"onnx_path": "det.onnx", "output_path": "det16.onnx", "low_precision_type": "fp16", "keep_io_types": ""}
def command(opts):
    return "python -m modelopt.onnx.autocast " + " ".join(f"--{k} {v}" for k, v in opts.items())
def main():
    subprocess.run(shlex.split(command(OPTIONS)), check=True)
