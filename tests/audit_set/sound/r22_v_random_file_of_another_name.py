import os

import numpy as np
from modelopt.onnx.autocast import convert_to_mixed_precision

CALIB = "build/calib.npz"
SMOKE = "build/smoke.npz"


def prepare():
    np.savez(SMOKE, images=np.random.normal(size=(4, 3, 224, 224)).astype(np.float32))


def main(path):
    prepare()
    return convert_to_mixed_precision(onnx_path=path, low_precision_type="fp16", calibration_data=CALIB)
