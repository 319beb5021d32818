# expect: none
import torch
@torch.inference_mode()
def predict(model, loader, device):
    probs = []
    for x in loader:
        with torch.autocast(device_type=device.type, dtype=torch.float16):
            logits = model(x.to(device))
        probs.append(torch.softmax(logits.float(), dim=1).cpu())
    return torch.cat(probs)
