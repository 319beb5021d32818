# expect: R10
import torch
import torch.nn as nn
from transformers import SegformerModel


class Half:
    norm_eps = 1e-3

    def prepare(self, module):
        for child in module.modules():
            if isinstance(child, nn.LayerNorm):
                child.eps = self.norm_eps
        return module.half()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = SegformerModel.from_pretrained("nvidia/mit-b1")

    def forward(self, x):
        return self.encoder(x).last_hidden_state


@torch.inference_mode()
def main(x):
    policy = Half()
    return policy.prepare(Net())(x)
