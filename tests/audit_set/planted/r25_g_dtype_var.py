# expect: R25
import torch
def main(model, fp16=True):
    dtype = torch.float16 if fp16 else torch.float32
    model = model.to(dtype)
    evaluate(model)
    model = model.to(torch.float32)
    return torch.ao.quantization.prepare_qat(model)
