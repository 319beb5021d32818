# expect: none
import torch
class Exporter:
    def __init__(self, args, model):
        self.args = args
        self.model = model
    def export_onnx(self, f):
        output_names = ["output0", "output1"] if self.model.task == "segment" else ["output0"]
        dynamic = self.args.dynamic
        if dynamic:
            dynamic = {"images": {0: "batch", 2: "height", 3: "width"}}
            if self.model.task == "segment":
                dynamic["output0"] = {0: "batch", 2: "anchors"}
                dynamic["output1"] = {0: "batch", 2: "mask_height"}
            else:
                dynamic["output0"] = {0: "batch", 2: "anchors"}
        torch.onnx.export(self.model, self.im, f, opset_version=17, dynamo=False, input_names=["images"],
                          output_names=output_names, dynamic_axes=dynamic or None)
