# expect: R09
import torch
import torch.nn.functional as F
from torch import nn


class FaceNet(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.fc = nn.Linear(512, 128)

    def forward(self, image):
        return F.normalize(self.fc(self.body(image)))


@torch.no_grad()
def embed_all(model, loader):
    model.eval()
    out = []
    for image in loader:
        with torch.autocast("cpu", torch.float16):
            out.append(model(image))
    return torch.cat(out)
