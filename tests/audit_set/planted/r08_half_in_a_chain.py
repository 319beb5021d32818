# expect: R08
import torch
from diffusers import UNet2DConditionModel


class Trainer:
    def __init__(self, name, device="cuda"):
        self.unet = UNet2DConditionModel.from_pretrained(name, subfolder="unet")
        self.unet.to(device).half()
        self.unet.train()
        self.optimizer = torch.optim.AdamW(self.unet.parameters(), lr=1e-5, eps=1e-6)
        self.scaler = torch.amp.GradScaler(device)

    def step(self, latents, t, text, noise):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            out = self.unet(latents, t, text).sample
            loss = torch.nn.functional.mse_loss(out.float(), noise.float())
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
