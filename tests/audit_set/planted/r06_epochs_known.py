# expect: R06
import torch
from torch.utils.data import DataLoader, TensorDataset
ds = TensorDataset(torch.randn(6400, 8), torch.randint(0, 2, (6400,)))
loader = DataLoader(ds, batch_size=64, shuffle=True)
EPOCHS = 20
def main(model, opt):
    scaler = torch.amp.GradScaler("cuda", growth_interval=4000)
    for ep in range(EPOCHS):
        for x, y in loader:
            opt.zero_grad()
            with torch.autocast("cuda"):
                loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
