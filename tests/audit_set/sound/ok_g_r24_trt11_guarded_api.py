# expect: none
import tensorrt as trt
def cfg(builder):
    c = builder.create_builder_config()
    if int(trt.__version__.split(".")[0]) < 11:
        c.set_flag(trt.BuilderFlag.FP16)
    return c
