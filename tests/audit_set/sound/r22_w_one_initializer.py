import numpy as np
import onnx
from onnx import TensorProto, numpy_helper


def fix_scale(model: onnx.ModelProto, name: str, cast: str) -> onnx.ModelProto:
    for init in model.graph.initializer:
        if init.name == name and init.data_type == TensorProto.FLOAT:
            init.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(init).astype(np.float16), init.name))
    for info in model.graph.value_info:
        if info.name == cast:
            info.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def fix_some(model, names):
    chosen = [i for i in model.graph.initializer if i.name in names]
    for init in chosen:
        init.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(init).astype(np.float16), init.name))


def add_eps(model, eps):
    model.graph.initializer.append(numpy_helper.from_array(np.array(eps).astype(np.float16), "eps"))
