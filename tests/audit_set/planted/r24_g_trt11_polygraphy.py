# expect: R24
from polygraphy.backend.trt import CreateConfig, engine_from_network, network_from_onnx_path
import tensorrt as trt
assert trt.__version__.split(".")[0] == "11"
engine = engine_from_network(network_from_onnx_path("a.onnx"), config=CreateConfig(fp16=True))
