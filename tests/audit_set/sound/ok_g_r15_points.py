import torch
class Pts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.1, -0.3, 2.0])); self.register_buffer("std", torch.tensor([1.2, 0.8, 3.0]))
    def forward(self, xyz):
        return (xyz - self.mean) / self.std
