import torch
import torch.nn.functional as F


def clip_loss(img, txt, scale):
    with torch.autocast("cuda", dtype=torch.float16):
        img = F.normalize(img, dim=-1)
        txt = F.normalize(txt, dim=-1, eps=1e-12)
        logits = scale * img @ txt.t()
        labels = torch.arange(len(logits), device=logits.device)
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
