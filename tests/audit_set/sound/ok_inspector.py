# expect: none
import tensorrt as trt


def build(network, builder, runtime):
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    plan = builder.build_serialized_network(network, config)
    inspector = runtime.deserialize_cuda_engine(plan).create_engine_inspector()
    return inspector.get_engine_information(trt.LayerInformationFormat.JSON)
