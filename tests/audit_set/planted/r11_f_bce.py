# expect: R11
import torch


class Loss(torch.nn.Module):
    def forward(self, logits, t):
        p = torch.sigmoid(logits)
        a = t * p.log()
        b = (1 - t) * (1 - p).log()
        return -(a + b).mean()
