# expect: R08
import torch
from peft import LoraConfig, get_peft_model
class Cfg:
    dtype = torch.float16
    lr = 1e-4
def main(unet, loader, cfg=Cfg):
    unet.requires_grad_(False)
    unet.add_adapter(LoraConfig(r=4, target_modules=["to_q"]))
    unet.to("cuda", dtype=cfg.dtype)
    params = list(filter(lambda p: p.requires_grad, unet.parameters()))
    optimizer = torch.optim.AdamW(params, lr=cfg.lr)
    for x, t, e in loader:
        loss = unet(x, t, e).sample.float().square().mean()
        loss.backward(); optimizer.step(); optimizer.zero_grad()
