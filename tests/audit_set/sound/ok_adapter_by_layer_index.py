import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self, layers, adapter):
        super().__init__()
        self.layers, self.adapter = layers, adapter


def train(layers, adapter, loader):
    opt = torch.optim.AdamW(layers.parameters())
    ad_opt = torch.optim.AdamW(adapter.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        ad_opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            h = x.cuda()
            for i, layer in enumerate(layers):
                h = layer(h)
                if i < 2:
                    h = adapter(h)
            loss = F.cross_entropy(h, y.cuda())
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.step(ad_opt)
        scaler.update()
