import torch
import torch.nn.functional as F


def sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2.0):
    p = torch.sigmoid(inputs)
    ce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    loss = ce * ((1 - p_t) ** gamma)
    return (loss * (alpha * targets + (1 - alpha) * (1 - targets))).mean()


def step(model, x, y, opt, scaler):
    opt.zero_grad()
    with torch.autocast("cuda"):
        loss = sigmoid_focal_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
