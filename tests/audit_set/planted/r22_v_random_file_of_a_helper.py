# expect: R22
import argparse

import numpy as np
import onnx
from modelopt.onnx.autocast import convert_to_mixed_precision


def write_calibration(path, batch):
    rng = np.random.default_rng(0)
    np.savez(path, pixel_values=rng.uniform(0, 1, (batch, 3, 256, 256)).astype("float32"))
    return path


def main():
    p = argparse.ArgumentParser()
    p.add_argument("onnx")
    args = p.parse_args()
    data = write_calibration("calib.npz", 4)
    model = convert_to_mixed_precision(onnx_path=args.onnx, low_precision_type="fp16", calibration_data=data)
    onnx.save(model, "out.onnx")


if __name__ == "__main__":
    main()
