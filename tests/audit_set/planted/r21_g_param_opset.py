# expect: R21
import timm, torch
def export(net, size, path, opset, half):
    x = torch.randn(1, 3, size, size, device="cuda")
    if half:
        net, x = net.half(), x.half()
    torch.onnx.export(net, (x,), path, dynamo=False, opset_version=opset, input_names=["x"], output_names=["y"])
def main():
    net = timm.create_model("vit_base_patch16_224").eval().cuda()
    export(net, 224, "v.onnx", opset=13, half=True)
