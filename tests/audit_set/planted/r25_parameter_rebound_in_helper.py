# expect: R25
import torch
from torch.ao.quantization.quantize_fx import prepare_qat_fx


def write_fp16(net, path):
    net.half()
    torch.save(net.state_dict(), path)


def begin_qat(net, mapping, example):
    net = net.float().train()
    return prepare_qat_fx(net, mapping, example)


def main(build, mapping, example):
    net = build()
    write_fp16(net, "fp16.pt")
    return begin_qat(net, mapping, example)
