# expect: R09
import torch

from diffusers import StableDiffusionPipeline
pipe = StableDiffusionPipeline.from_pretrained("sd", torch_dtype=torch.float16).to("cuda")
def cfg(lat, t, emb, g=7.5):
    u, c = pipe.unet(torch.cat([lat] * 2), t, encoder_hidden_states=emb).sample.chunk(2)
    out = u + g * (c - u)
    ratio = c.std(dim=(1, 2, 3), keepdim=True) / (out.std(dim=(1, 2, 3), keepdim=True) + 1e-8)
    return out * ratio
