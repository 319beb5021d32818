# expect: R25
import torch
def convert(path):
    sd = torch.load(path, weights_only=True)["model"]
    for k in sd:
        sd[k] = sd[k].half().float()
    return sd
def main(net, path):
    net.load_state_dict(convert(path))
    return torch.ao.quantization.prepare_qat(net)
