# expect: R23
import torch
import torch.nn.functional as F
from torch import nn


class Dewarp(nn.Module):
    def __init__(self):
        super().__init__()
        self.flow = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, page):
        grid = self.flow(page).permute(0, 2, 3, 1)
        return F.grid_sample(page, grid, align_corners=True)


def build(path):
    net = Dewarp()
    net.load_state_dict(torch.load(path, weights_only=True))
    return net.cuda().eval()


def compile_engine(path, out):
    model = build(path)
    model = model.half()
    page = torch.zeros(1, 3, 1024, 1448, device="cuda", dtype=torch.float16)
    torch.onnx.export(model, (page,), out, opset_version=17, dynamo=False)
