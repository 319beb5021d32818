# expect: R25
import torch


def main(model):
    model.to(torch.half)
    torch.save(model.state_dict(), "half.pt")
    model.to(torch.float)
    return torch.ao.quantization.prepare_qat(model.train())
