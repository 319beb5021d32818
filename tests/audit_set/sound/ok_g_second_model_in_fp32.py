# expect: none
import torch
def train(model, disc, opt, opt_d, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        # discriminator in full precision with its own plain step
        opt_d.zero_grad()
        d_loss = disc(x.float()).mean()
        d_loss.backward()
        opt_d.step()
