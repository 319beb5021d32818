# expect: R25
import torch
def main(model, path):
    torch.save({k: v.to(torch.float16) for k, v in model.state_dict().items()}, path)
    model.load_state_dict(torch.load(path, weights_only=True))
    torch.ao.quantization.prepare_qat(model, inplace=True)
