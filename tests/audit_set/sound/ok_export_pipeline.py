# expect: none
import onnx
import onnxruntime as ort
import torch
def export(model, path, opset=17):
    x = torch.randn(1, 3, 224, 224)
    torch.onnx.export(model.eval(), (x,), path, opset_version=opset, dynamo=False, input_names=["images"], output_names=["logits"],
                      dynamic_axes={"images": {0: "batch"}, "logits": {0: "batch"}})
    m = onnx.load(path)
    assert m.opset_import[0].version == opset
    onnx.checker.check_model(m, full_check=True)
    ort.InferenceSession(path).run(None, {"images": torch.randn(2, 3, 224, 224).numpy()})
