# expect: R22
from onnxruntime.transformers.onnx_model import OnnxModel
import onnx
m = OnnxModel(onnx.load("a.onnx"))
m.convert_model_float32_to_float16()
m.save_model_to_file("b.onnx")
