# expect: R25
import torch
from safetensors.torch import load_file, save_file
def slim(model, p):
    save_file({k: v.half() for k, v in model.state_dict().items()}, p)
def start(model, p):
    slim(model, p)
    sd = {k: v.float() for k, v in load_file(p).items()}
    model.load_state_dict(sd)
    return torch.ao.quantization.prepare_qat(model)
