# expect: R09
import torch

def main(net, loader):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.float16 if device == "cuda" else torch.float32
    net = net.to(device, dtype=dtype)
    for x in loader:
        y = net(x.to(device, dtype))
        y = (y - y.mean(1, keepdim=True)) / (y.std(1, keepdim=True) + 1e-12)
