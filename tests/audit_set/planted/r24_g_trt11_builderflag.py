# expect: R24
import tensorrt as trt
assert trt.__version__ >= "11", trt.__version__
def build(builder, network):
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    return builder.build_serialized_network(network, config)
