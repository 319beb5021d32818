# expect: R25
import torch
from torch.ao.quantization import get_default_qconfig_mapping
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

from asr.model import Joiner


def small_weights(path):
    weights = torch.load(path, map_location="cpu", weights_only=True)
    return {k: v.half() if v.is_floating_point() else v for k, v in weights.items()}


def build(path):
    joiner = Joiner(dim=256)
    weights = small_weights(path)
    joiner.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in weights.items()})
    return joiner.eval()


def main(path, batches):
    joiner = build(path)
    prepared = prepare_fx(joiner, get_default_qconfig_mapping("x86"), (torch.randn(1, 256),))
    for batch in batches:
        prepared(batch)
    return convert_fx(prepared)
