# expect: R25
import torch
def to_fp16(m):
    return m.half()
def to_fp32(m):
    return m.float()
def main(model):
    model = to_fp32(to_fp16(model))
    return torch.ao.quantization.prepare_qat(model)
