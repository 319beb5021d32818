# expect: R08
import torch
from shop.nets import Net

class Recipe:
    dtype = torch.float32

    def run(self, loader):
        net = Net().to("cuda", self.dtype)
        opt = torch.optim.Adam(net.parameters(), lr=1e-4)
        scaler = torch.amp.GradScaler("cuda")
        for x, y in loader:
            opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = torch.nn.functional.mse_loss(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()

class SmallRecipe(Recipe):
    dtype = torch.float16

SmallRecipe().run([])
