# expect: R10
import torch
from torch import nn
from transformers import AutoModel

model = AutoModel.from_pretrained("bert-base-uncased")
tiny = torch.finfo(torch.half).tiny
for module in model.modules():
    if isinstance(module, nn.LayerNorm):
        module.eps = max(module.eps, tiny)
