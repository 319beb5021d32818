import torch
from torch import nn


class PerKindMetrics(nn.ModuleDict):
    def forward(self, prediction, target):
        total = {}
        for name, metric in self.items():
            value = metric(prediction, target)
            assert not torch.isnan(value), name
            total[name] = value
        return total


class FlowLoss(nn.Module):
    def forward(self, z, log_det):
        loss = z.square().mean() - log_det.mean()
        if torch.isnan(loss):
            raise RuntimeError("the loss is NaN")
        return loss
