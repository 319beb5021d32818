# expect: R08
import torch
from torch import nn
from diffusers import UNet2DConditionModel

unet = UNet2DConditionModel.from_pretrained("some/base", subfolder="unet")
unet.requires_grad_(False)


class LoRAConv2d(nn.Module):
    def __init__(self, base, r=4):
        super().__init__()
        self.base = base
        self.down = nn.Conv2d(base.in_channels, r, 1, bias=False)
        self.up = nn.Conv2d(r, base.out_channels, 1, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


unet.conv_in = LoRAConv2d(unet.conv_in)
unet.to("cuda", dtype=torch.float16)
optimizer = torch.optim.AdamW([p for p in unet.parameters() if p.requires_grad], lr=1e-4)
for latents, noise, t, emb in loader:
    pred = unet(latents.half(), t, emb.half()).sample
    loss = torch.nn.functional.mse_loss(pred.float(), noise.float())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
