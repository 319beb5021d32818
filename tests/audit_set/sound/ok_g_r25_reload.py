import torch
def go(model, path):
    model.half()
    bench(model)
    model.float()
    model.load_state_dict(torch.load(path, weights_only=True))
    return torch.ao.quantization.prepare_qat(model)
