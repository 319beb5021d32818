# expect: R25
import torch
def save_slim(model, path):
    sd = model.state_dict()
    for k, v in sd.items():
        if v.dtype == torch.float32:
            sd[k] = v.half()
    torch.save({"model": sd}, path)
def main(model, path):
    save_slim(model, path)
    ck = torch.load(path, weights_only=True)
    model.load_state_dict({k: v.float() for k, v in ck["model"].items()})
    model = torch.ao.quantization.prepare_qat(model.train())
