# expect: R25
import torch


def to_int8(net: torch.nn.Module, calib):
    net = net.eval().half().cuda()
    with torch.inference_mode():
        net(calib.half().cuda())
    net = net.cpu().float()
    return torch.ao.quantization.prepare(net)
