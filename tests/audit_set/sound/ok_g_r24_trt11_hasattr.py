# expect: none
"""Works with TensorRT 10 and 11."""
import tensorrt as trt
def cfg(builder):
    c = builder.create_builder_config()
    if hasattr(trt.BuilderFlag, "FP16"):
        c.set_flag(trt.BuilderFlag.FP16)
    return c
