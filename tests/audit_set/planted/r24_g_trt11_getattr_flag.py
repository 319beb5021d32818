# expect: R24
"""Engine builder for TensorRT 11 (Blackwell servers)."""
import tensorrt as trt
def cfg(builder, precision):
    c = builder.create_builder_config()
    c.set_flag(getattr(trt.BuilderFlag, precision.upper()))
    return c
def main(builder):
    return cfg(builder, "fp16")
