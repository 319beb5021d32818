# expect: R19
import onnx


def stamp(path, opset=13):
    model = onnx.load(path)
    del model.opset_import[:]
    model.opset_import.extend([onnx.helper.make_opsetid("", opset)])
    onnx.save(model, path)
