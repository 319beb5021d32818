# expect: R22
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper


def half(init):
    return numpy_helper.from_array(numpy_helper.to_array(init).astype(np.float16), init.name)


def convert(path):
    model = onnx.load(path)
    weights = model.graph.initializer
    for i, init in enumerate(weights):
        if init.data_type == TensorProto.FLOAT:
            weights[i].CopyFrom(half(init))
    for value in model.graph.input:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model
