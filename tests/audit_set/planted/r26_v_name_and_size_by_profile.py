# expect: R26
import timm
import torch

BACKBONES = {
    "edge": ("mobilenetv3_small_100", 224),
    "server": ("resnet50", 256),
}


class Embedder:
    def __init__(self, profile="server"):
        name, self.size = BACKBONES[profile]
        self.net = timm.create_model(name, pretrained=True, num_classes=0).cuda().half().eval()

    @torch.inference_mode()
    def __call__(self, x):
        return self.net(x.half().cuda()).float()
