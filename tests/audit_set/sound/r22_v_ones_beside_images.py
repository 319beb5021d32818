import numpy as np
from modelopt.onnx.autocast import convert_to_mixed_precision


def feeds(path):
    data = np.load(path)
    return {"image": data["image"].astype(np.float32), "mask": np.ones((len(data["image"]), 1), dtype=np.float32)}


def convert(onnx_path, path):
    np.savez("calib.npz", **feeds(path))
    return convert_to_mixed_precision(onnx_path=onnx_path, low_precision_type="fp16", calibration_data="calib.npz")
