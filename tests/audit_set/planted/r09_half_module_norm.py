# expect: R09
import torch
from torch import nn


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(768, 256)

    def forward(self, x):
        x = self.proj(x)
        return x / (x.norm(dim=-1, keepdim=True) + 1e-8)


def serve(queries):
    model = Embedder().half().cuda().eval()
    with torch.inference_mode():
        return model(queries.half().cuda())
