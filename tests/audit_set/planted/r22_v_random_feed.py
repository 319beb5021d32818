# expect: R22
import numpy as np
from modelopt.onnx.autocast import convert_to_mixed_precision


def random_inputs(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


SHAPES = {"ids": (1, 128), "mask": (1, 128)}


def convert(path):
    feed = random_inputs(SHAPES)
    return convert_to_mixed_precision(path, low_precision_type="fp16", calibration_data=feed)
