import torch
class M(torch.nn.Module):
    def forward(self, a, b):
        scale = self.logit_scale.exp()
        if scale > 16384: scale = scale.clamp(max=100)
        return scale * a @ b.t()
