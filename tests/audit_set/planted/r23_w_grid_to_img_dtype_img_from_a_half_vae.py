# expect: R23
import torch
import torch.nn.functional as F

def warp(img, flow):
    n, _, h, w = img.shape
    grid = flow.permute(0, 2, 3, 1).float()
    return F.grid_sample(img, grid.to(img.dtype), align_corners=True)
def run(flow_net, frames):
    from diffusers import AutoencoderTiny
    vae = AutoencoderTiny.from_pretrained("madebyollin/taesd", torch_dtype=torch.float16).to("cuda").eval()
    prev = None
    for f in frames:
        x = f[None].float()
        rec = vae.decode(vae.encode(x.half()).latents).sample
        if prev is not None:
            flow = flow_net(x, prev[1])
            rec = 0.6 * rec + 0.4 * warp(prev[0], flow)
        prev = (rec, x)
