import torch
from diffusers import AutoencoderKL
def decode(z, name):
    vae = AutoencoderKL.from_pretrained(name, torch_dtype=torch.float16).cuda()
    vae.to(torch.float32)
    return vae.decode(z.float()).sample
