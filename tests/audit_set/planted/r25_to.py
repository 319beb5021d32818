# expect: R25
import torch
def convert(net, qat):
    net = net.to(torch.float16)
    net = net.to(torch.float32)
    net.train()
    return qat(net)
