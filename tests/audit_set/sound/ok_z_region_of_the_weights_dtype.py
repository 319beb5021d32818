import torch
from torch import nn


def class_loss(logits, target):
    return nn.CrossEntropyLoss()(logits[:, :-3], target.long())


def finetune(net, loader, optimizer, device):
    """The region has the dtype of the weights, and these are float32 from here on."""
    before = net.dtype
    if net.dtype == torch.bfloat16:
        net = net.float()
        net.dtype = torch.float32
    for image, target in loader:
        with torch.autocast(device_type=device.type, dtype=net.dtype):
            y = net(image.to(device))
        loss = class_loss(y, target.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.dtype = before
