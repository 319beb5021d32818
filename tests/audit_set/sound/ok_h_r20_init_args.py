# expect: none
import torch
class Stage:
    def __init__(self, net, names, axes):
        self.net, self.names, self.axes = net, names, axes
    def __call__(self, x, path):
        torch.onnx.export(self.net, x, path, input_names=self.names[0], output_names=self.names[1],
                          dynamic_axes=self.axes, opset_version=17, dynamo=False)
def main(enc, dec, x, z):
    Stage(enc, (["image"], ["latent"]), {"image": {0: "b"}, "latent": {0: "b"}})(x, "enc.onnx")
    Stage(dec, (["latent"], ["image"]), {"latent": {0: "b"}, "image": {0: "b"}})(z, "dec.onnx")
