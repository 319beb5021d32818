# expect: R22
import onnx
import onnx_graphsurgeon as gs
import numpy as np
def to_half(graph):
    for t in graph.tensors().values():
        if isinstance(t, gs.Constant) and t.values.dtype == np.float32:
            t.values = t.values.astype(np.float16)
        elif t.dtype == np.float32:
            t.dtype = np.float16
    return graph
def main(p):
    g = gs.import_onnx(onnx.load(p))
    onnx.save(gs.export_onnx(to_half(g)), "half.onnx")
