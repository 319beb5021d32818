import torch
from torch import nn


class MaskedAutoencoder(nn.Module):
    def __init__(self, encoder, decoder, norm_pix_loss=True):
        super().__init__()
        self.encoder, self.decoder, self.norm_pix_loss = encoder, decoder, norm_pix_loss

    def forward_loss(self, target, pred, mask):
        if self.norm_pix_loss:
            mean = target.mean(dim=-1, keepdim=True)
            var = target.var(dim=-1, keepdim=True)
            target = (target - mean) / (var + 1.0e-6) ** 0.5
        loss = (pred - target) ** 2
        loss = loss.mean(dim=-1)
        return (loss * mask).sum() / mask.sum()

    def forward(self, imgs, mask):
        with torch.autocast("cuda"):
            pred = self.decoder(self.encoder(imgs, mask))
            return self.forward_loss(imgs, pred, mask)
