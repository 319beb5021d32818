# expect: R25
import torch


def prepare(path, build):
    model = build()
    model.load_state_dict(torch.load(path, weights_only=True))
    model = model.half()
    model.eval()
    qat = model.float()
    return torch.ao.quantization.prepare_qat(qat.train())
