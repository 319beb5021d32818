# expect: none
import onnx
from onnxconverter_common import float16
CFG = {"half": {"enabled": True, "keep_io": True, "block": ["Softmax", "ReduceMean", "Pow"]}}
class Stage:
    def __init__(self, cfg):
        self.cfg = cfg["half"]
    def __call__(self, m):
        if self.cfg["enabled"]:
            m = float16.convert_float_to_float16(m, keep_io_types=self.cfg["keep_io"], op_block_list=self.cfg["block"])
        return m
def main():
    onnx.save(Stage(CFG)(onnx.load("x.onnx")), "y.onnx")
