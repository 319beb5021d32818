import torch
from diffusers.training_utils import cast_training_params
from peft import LoraConfig
def main(unet, loader):
    unet.requires_grad_(False)
    unet.add_adapter(LoraConfig(r=4, target_modules=["to_q"]))
    unet.to("cuda", dtype=torch.float16)
    cast_training_params(unet, dtype=torch.float32)
    opt = torch.optim.AdamW(filter(lambda p: p.requires_grad, unet.parameters()), lr=1e-4)
    for x, t, e in loader:
        loss = unet(x, t, e).sample.float().square().mean()
        loss.backward(); opt.step(); opt.zero_grad()
