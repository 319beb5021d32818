import torch
from accelerate import Accelerator
from diffusers import UNet2DConditionModel
from diffusers.training_utils import cast_training_params
from peft import LoraConfig


def main(args, loader, loss_of):
    accelerator = Accelerator(mixed_precision="fp16")
    unet = UNet2DConditionModel.from_pretrained(args.model, subfolder="unet")
    unet.requires_grad_(False)
    unet.to(accelerator.device, dtype=torch.float16)
    unet.add_adapter(LoraConfig(r=4, lora_alpha=4, target_modules=["to_k", "to_q", "to_v"]))
    cast_training_params(unet, dtype=torch.float32)
    lora_layers = filter(lambda p: p.requires_grad, unet.parameters())
    optimizer = torch.optim.AdamW(lora_layers, lr=1e-4)
    unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
    for batch in loader:
        loss = loss_of(unet, batch)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
