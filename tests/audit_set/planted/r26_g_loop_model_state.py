# expect: R26
import torch
from torchvision.models import efficientnet_b3
def save(ckpt, out):
    model = efficientnet_b3(num_classes=10)
    model.load_state_dict(torch.load(ckpt, weights_only=True))
    half = {}
    for k, v in model.state_dict().items():
        half[k] = v.half() if v.is_floating_point() else v
    torch.save(half, out)
