import torch
from torch import Tensor


@torch.library.custom_op("acme::gate", mutates_args=())
def gate(x: Tensor, w: Tensor) -> Tensor:
    return x * w.sigmoid()


torch.library.register_autocast("acme::gate", "cuda", torch.float32)


def run(fc, x, w):
    with torch.autocast("cuda"):
        return gate(fc(x), w)
