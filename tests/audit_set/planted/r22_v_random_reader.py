# expect: R22
import numpy as np
import onnx
from modelopt.onnx.autocast import convert_to_mixed_precision


class RandomReader:
    def __init__(self, shapes, n=16):
        self.shapes, self.n = shapes, n

    def data(self):
        rng = np.random.RandomState(0)
        return {k: rng.rand(self.n, *s).astype("float32") for k, s in self.shapes.items()}


def convert(src, dst):
    reader = RandomReader({"video": (3, 16, 112, 112)})
    model = convert_to_mixed_precision(src, low_precision_type="fp16", calibration_data=reader.data())
    onnx.save(model, dst)
