# expect: R25
import torch
from torch.ao.quantization import get_default_qat_qconfig, prepare_qat


def to_qat(net):
    net = net.half()
    net.eval()
    net = net.float()
    net.train()
    net.qconfig = get_default_qat_qconfig("fbgemm")
    return prepare_qat(net)
