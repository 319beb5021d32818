import torch
def set_precision(net, half):
    return net.half() if half else net.float()
def main(a, b):
    set_precision(a, True)
    set_precision(b, False)
