# expect: R24
import tensorrt as trt

logger = trt.Logger(trt.Logger.WARNING)


def build(network, builder):
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    plan = builder.build_serialized_network(network, config)
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    return engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
