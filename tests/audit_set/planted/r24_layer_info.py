# expect: R24
import os


def build(model, engine):
    os.system(f"trtexec --onnx={model} --saveEngine={engine} --fp16 --exportLayerInfo=layers.json")
