# expect: R22
import numpy as np, onnx
from onnx import numpy_helper, TensorProto
m = onnx.load("a.onnx")
for init in m.graph.initializer:
    if init.data_type == TensorProto.FLOAT:
        arr = numpy_helper.to_array(init)
        init.CopyFrom(numpy_helper.from_array(arr.astype(np.float16), init.name))
for v in list(m.graph.input) + list(m.graph.output):
    v.type.tensor_type.elem_type = TensorProto.FLOAT16
onnx.save(m, "b.onnx")
