# expect: none
import numpy as np, onnx
from onnxconverter_common import float16
def lower(src, dst, maxima):
    m = onnx.load(src)
    block = [n.name for n in m.graph.node if any(maxima.get(o, 0) > 65504 for o in n.output)]
    onnx.save(float16.convert_float_to_float16(m, keep_io_types=True, node_block_list=block), dst)
