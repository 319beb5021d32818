import torch
def go(model):
    sd = {k: v.clone() for k, v in model.state_dict().items()}
    model.half()
    bench(model)
    model.float()
    model.load_state_dict(sd)
    return torch.ao.quantization.prepare_qat(model)
