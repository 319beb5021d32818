# expect: R27
import torch


@torch.inference_mode()
def encode(vae, batches):
    for x in batches:
        with torch.autocast("cuda", dtype=torch.float16) and torch.no_grad():
            yield vae.encode(x.cuda())
