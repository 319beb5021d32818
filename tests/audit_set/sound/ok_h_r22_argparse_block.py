# expect: none
import argparse
import onnx
from onnxconverter_common import float16
def args():
    p = argparse.ArgumentParser()
    p.add_argument("src"); p.add_argument("dst")
    p.add_argument("--block", nargs="*", default=None)
    return p.parse_args()
def convert(model, a):
    return float16.convert_float_to_float16(model, keep_io_types=True, op_block_list=a.block)
if __name__ == "__main__":
    a = args()
    onnx.save(convert(onnx.load(a.src), a), a.dst)
