# expect: R21
import torch
import torch.nn as nn

class Tagger(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.out = nn.Linear(d, 4)

    def forward(self, x):
        return self.out(self.norm(x))

def prepare(model):
    model.eval()
    model.to(device="cuda", dtype=torch.float16)
    for p in model.parameters():
        p.requires_grad_(False)

def main():
    m = Tagger()
    prepare(m)
    torch.onnx.export(m, torch.zeros(1, 64, device="cuda", dtype=torch.float16), "t.onnx", opset_version=14, dynamo=False)
main()
