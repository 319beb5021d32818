# expect: none
import onnx
from modelopt.onnx.autocast import convert_to_mixed_precision
class MixedPrecision:
    defaults = dict(low_precision_type="fp16", keep_io_types=True, nodes_to_exclude=None)
    def __init__(self, **over):
        self.kw = {**self.defaults, **over}
    def __call__(self, path, out):
        onnx.save(convert_to_mixed_precision(onnx_path=path, **self.kw), out)
if __name__ == "__main__":
    MixedPrecision(calibration_data="c.npz")("a.onnx", "a16.onnx")
