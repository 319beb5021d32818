# expect: R18
import torch, warnings
class M(torch.nn.Module):
    def forward(self, x):
        y = self.l(x)
        if torch.isnan(y).any() or torch.isinf(y).any():
            if torch.is_grad_enabled():
                raise ValueError("nan")
            else:
                warnings.warn("nan")
        return y
