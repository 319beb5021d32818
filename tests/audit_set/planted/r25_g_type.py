# expect: R25
import torch
def prep(model):
    return torch.quantization.prepare_qat(model.type(torch.float16).type(torch.float32))
