import json

import torch


def restore(folder, factory, half=True):
    with open(f"{folder}/config.json") as file:
        conf = json.load(file)
    conf.setdefault("norm_eps", 1e-6)
    net = factory(conf)
    net.load_state_dict(torch.load(f"{folder}/weights.pt", weights_only=True))
    return net.half().cuda()
