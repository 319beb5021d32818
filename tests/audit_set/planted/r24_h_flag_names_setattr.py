# expect: R24
import tensorrt as trt
PRECISION_FLAGS = {"fp16": "FP16", "int8": "INT8"}
REQUIRED = (11, 0)
assert tuple(int(p) for p in trt.__version__.split(".")[:2]) >= REQUIRED
def apply(config, names):
    for n in names:
        config.set_flag(getattr(trt.BuilderFlag, PRECISION_FLAGS[n]))
def main(builder):
    config = builder.create_builder_config()
    apply(config, ["fp16"])
    return config
