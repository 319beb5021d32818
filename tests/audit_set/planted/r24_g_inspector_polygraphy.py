# expect: R24
from polygraphy.backend.trt import CreateConfig, EngineFromNetwork, NetworkFromOnnxPath
import tensorrt as trt
engine = EngineFromNetwork(NetworkFromOnnxPath("a.onnx"), config=CreateConfig(fp16=True))()
insp = engine.create_engine_inspector()
print(insp.get_engine_information(trt.LayerInformationFormat.JSON))
