# expect: R22
import subprocess

import numpy as np


def make_inputs(out="calib.npz"):
    np.savez(out, input=np.random.randn(1, 3, 224, 224).astype(np.float32))
    return out


def convert(src, dst):
    calib = make_inputs()
    subprocess.run(["python", "-m", "modelopt.onnx.autocast", "--onnx_path", src, "--output_path", dst, "--calibration_data", calib], check=True)


convert("a.onnx", "b.onnx")
