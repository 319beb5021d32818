import torch
class Dice(torch.nn.Module):
    def __init__(self): super().__init__(); self.eps = 1e-3
loss = Dice()
net = torch.hub.load("a/b", "c", pretrained=True)
loss.eps = 1e-4
