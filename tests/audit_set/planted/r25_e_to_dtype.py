# expect: R25
import torch


def load(net, path):
    net.load_state_dict(torch.load(path, weights_only=True))
    net.to(dtype=torch.float16)
    net = net.to("cuda")
    net.to(torch.float32)
    net.train()
    return net
