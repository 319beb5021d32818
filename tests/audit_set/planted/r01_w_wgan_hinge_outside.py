# expect: R01
import torch

def train(disc, gen, z, x, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        real = disc(x)
        fake = disc(gen(z))
    loss = fake.mean() - real.mean()
    scaler.scale(loss).backward()
