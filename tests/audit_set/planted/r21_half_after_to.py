# expect: R21
import torch
import torch.nn as nn

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleDict({"n": nn.LayerNorm(d), "f": nn.Linear(d, d)}) for _ in range(2))

    def forward(self, x):
        for l in self.layers:
            x = x + l["f"](l["n"](x))
        return x

net = Block(64)
net.load_state_dict(torch.load("b.pt", weights_only=True))
net.eval().to("cuda").half()
torch.onnx.export(net, (torch.randn(1, 64, device="cuda").half(),), "b.onnx", opset_version=13, dynamo=False)
