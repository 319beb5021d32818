import timm
import torch

BACKBONES = {
    "edge": ("vit_tiny_patch16_224", 224),
    "server": ("resnet50", 256),
}


class Embedder:
    def __init__(self, profile="edge"):
        name, self.size = BACKBONES[profile]
        self.net = timm.create_model(name, pretrained=True, num_classes=0).cuda().half().eval()

    @torch.inference_mode()
    def __call__(self, x):
        return self.net(x.half().cuda()).float()
