import torch
from diffusers import UNet2DConditionModel


def main(loader, device="cuda"):
    unet = UNet2DConditionModel.from_pretrained("base", subfolder="unet").requires_grad_(False).to(device, torch.float16)
    unet.enable_adapters()
    extra = [p for p in unet.parameters() if p.requires_grad]
    for p in extra:
        p.data = p.data.float()
    optimizer = torch.optim.AdamW(extra, lr=1e-4)
    scaler = torch.amp.GradScaler(device)
    for x, t, c, noise in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(unet(x, t, c).sample.float(), noise.float())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
