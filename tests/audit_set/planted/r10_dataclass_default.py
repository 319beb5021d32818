# expect: R10
import torch
from torch import nn
from dataclasses import dataclass
@dataclass
class ModelConfig:
    dim: int = 512
    eps: float = torch.finfo(torch.half).tiny
class Encoder(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.norm = nn.LayerNorm(cfg.dim, eps=cfg.eps)
