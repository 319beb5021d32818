# expect: none
import torch


@torch.inference_mode()
def predict(model, loader):
    model = model.half().eval()
    return torch.cat([model(x.half()).argmax(1).cpu() for x in loader])
