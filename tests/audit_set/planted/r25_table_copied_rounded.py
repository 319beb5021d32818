# expect: R25
import modelopt.torch.quantization as mtq
from safetensors.torch import load_file

from nets import build_net


def shrink(sd):
    rounded = {}
    for key, value in sd.items():
        rounded[key] = value.half().float() if value.is_floating_point() else value
    return rounded


def quantise(path, calibrate):
    net = build_net()
    net.load_state_dict(shrink(load_file(path)))
    return mtq.quantize(net.eval(), mtq.INT8_DEFAULT_CFG, calibrate)
