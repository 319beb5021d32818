# expect: R17
import torch.distributed as dist


def resync(scaler, device):
    if dist.is_initialized():
        scaler._init_scale(2.0**16)
