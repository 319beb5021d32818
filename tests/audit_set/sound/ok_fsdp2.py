# expect: none
import torch
from torch.distributed.fsdp import fully_shard


def setup(model):
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    return model, torch.amp.GradScaler("cuda")
