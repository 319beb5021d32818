# expect: R21
import tensorrt as trt, torch, timm
def export():
    net = timm.create_model("convnext_tiny").eval()
    torch.onnx.export(net, torch.randn(1, 3, 224, 224), "n.onnx", opset_version=13, dynamo=False)
def build(builder, network):
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    return builder.build_serialized_network(network, config)
