import timm
import torch.nn as nn


class Classifier(nn.Module):
    def __init__(self, classes, name="vit_small_patch16_224"):
        super().__init__()
        body = timm.create_model(name, pretrained=True, num_classes=0)
        self.body = body
        self.head = nn.Sequential(nn.LayerNorm(body.num_features, eps=1e-5), nn.Linear(body.num_features, classes))

    def forward(self, x):
        return self.head(self.body(x).half().float())
