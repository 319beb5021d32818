# expect: none
import numpy as np, onnx
from onnx import numpy_helper, helper, TensorProto
m = onnx.load("a.onnx")
for init in m.graph.initializer:
    arr = numpy_helper.to_array(init)
    if np.abs(arr).max() < 65504:
        init.CopyFrom(numpy_helper.from_array(arr.astype(np.float16), init.name + "_h"))
        m.graph.node.insert(0, helper.make_node("Cast", [init.name], [init.name[:-2]], to=TensorProto.FLOAT))
onnx.save(m, "b.onnx")
