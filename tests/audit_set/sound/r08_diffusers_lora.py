import torch
from accelerate import Accelerator
from peft import LoraConfig
def main(unet, loader, args):
    accelerator = Accelerator(mixed_precision="fp16")
    weight_dtype = torch.float32
    if accelerator.mixed_precision == "fp16":
        weight_dtype = torch.float16
    unet.requires_grad_(False)
    unet.to(accelerator.device, dtype=weight_dtype)
    unet.add_adapter(LoraConfig(r=4))
    if args.mixed_precision == "fp16":
        for param in unet.parameters():
            if param.requires_grad:
                param.data = param.to(torch.float32)
    lora_layers = filter(lambda p: p.requires_grad, unet.parameters())
    optimizer = torch.optim.AdamW(lora_layers, lr=1e-4)
    for x, t, e in loader:
        loss = unet(x, t, e).sample.float().mean()
        accelerator.backward(loss); optimizer.step(); optimizer.zero_grad()
