# expect: R25
import torch
def shrink(model, p):
    torch.save({k: v.half() for k, v in model.state_dict().items()}, p)
def qat(model, p):
    shrink(model, p)
    sd = torch.load(p)
    model.load_state_dict({k: v.float() for k, v in sd.items()})
    model.qconfig = torch.ao.quantization.get_default_qat_qconfig("x86")
    return torch.ao.quantization.prepare_qat(model.train())
