import argparse

import numpy as np
import onnx
from modelopt.onnx.autocast import convert_to_mixed_precision


def write_calibration(path, images):
    np.savez(path, pixel_values=np.stack([np.load(i) for i in images]).astype("float32"))
    return path


def main():
    p = argparse.ArgumentParser()
    p.add_argument("onnx")
    p.add_argument("images", nargs="+")
    args = p.parse_args()
    data = write_calibration("calib.npz", args.images)
    model = convert_to_mixed_precision(onnx_path=args.onnx, low_precision_type="fp16", calibration_data=data)
    onnx.save(model, "out.onnx")


if __name__ == "__main__":
    main()
