import numpy as np
from PIL import Image
from modelopt.onnx.autocast import convert_to_mixed_precision


def calibration(files):
    batch = np.zeros((len(files), 3, 224, 224), dtype=np.float32)
    for i, f in enumerate(files):
        batch[i] = np.asarray(Image.open(f).resize((224, 224)), dtype=np.float32).transpose(2, 0, 1) / 255
    return batch


def convert(path, files):
    x = calibration(files)
    return convert_to_mixed_precision(onnx_path=path, low_precision_type="fp16", calibration_data={"x": x})
