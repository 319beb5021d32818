import onnx


def move_axes(graph):
    for node in graph.node:
        if node.op_type == "ReduceMean":
            axes = [a for a in node.attribute if a.name == "axes"]
            for a in axes:
                graph.initializer.append(onnx.numpy_helper.from_array(axes_of(a), node.name + "_axes"))
                node.attribute.remove(a)
                node.input.append(node.name + "_axes")


def axes_of(attribute):
    import numpy as np

    return np.array(attribute.ints, dtype=np.int64)


def to_18(path):
    model = onnx.load(path)
    move_axes(model.graph)
    model.opset_import[0].version = 18
    onnx.save(model, path)
