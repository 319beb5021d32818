import torch
import torch.nn.functional as F
from accelerate import Accelerator
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from transformers import CLIPTextModel


def main(args, loader):
    accelerator = Accelerator(gradient_accumulation_steps=4, mixed_precision="fp16")
    noise_scheduler = DDPMScheduler.from_pretrained(args.model, subfolder="scheduler")
    text_encoder = CLIPTextModel.from_pretrained(args.model, subfolder="text_encoder")
    vae = AutoencoderKL.from_pretrained(args.model, subfolder="vae")
    unet = UNet2DConditionModel.from_pretrained(args.model, subfolder="unet")
    vae.requires_grad_(False)
    text_encoder.requires_grad_(False)
    unet.train()
    weight_dtype = torch.float32
    if accelerator.mixed_precision == "fp16":
        weight_dtype = torch.float16
    elif accelerator.mixed_precision == "bf16":
        weight_dtype = torch.bfloat16
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-5, eps=1e-08)
    unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
    text_encoder.to(accelerator.device, dtype=weight_dtype)
    vae.to(accelerator.device, dtype=weight_dtype)
    for batch in loader:
        with accelerator.accumulate(unet):
            latents = vae.encode(batch["pixel_values"].to(weight_dtype)).latent_dist.sample()
            latents = latents * vae.config.scaling_factor
            noise = torch.randn_like(latents)
            t = torch.randint(0, 1000, (latents.shape[0],), device=latents.device).long()
            noisy = noise_scheduler.add_noise(latents, noise, t)
            hidden = text_encoder(batch["input_ids"], return_dict=False)[0]
            pred = unet(noisy, t, hidden, return_dict=False)[0]
            loss = F.mse_loss(pred.float(), noise.float(), reduction="mean")
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(unet.parameters(), args.max_grad_norm)
            optimizer.step()
            optimizer.zero_grad()
