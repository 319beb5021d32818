# expect: R19
import onnx


def label(model, number):
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = number


def main(path):
    model = onnx.load(path)
    model.producer_name = "exporter"
    for node in model.graph.node:
        print(node.op_type, list(node.input))
    label(model, 18)
    onnx.save(model, path)
