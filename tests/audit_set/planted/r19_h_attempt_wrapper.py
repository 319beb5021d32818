# expect: R19
import torch
def attempt(tag, **kw):
    try:
        torch.onnx.export(MODEL, X, f"{tag}.onnx", **kw)
    except Exception as exc:
        print(tag, exc)
MODEL = torch.nn.LayerNorm(8).eval()
X = (torch.randn(1, 8),)
attempt("legacy", opset_version=17, dynamo=False)
attempt("new", opset_version=17, dynamo=True)
