import torch
net = torch.hub.load("a/b", "c", pretrained=True)
opt = torch.optim.Adam(net.parameters())
opt.eps = 1e-6
opt.defaults["eps"] = 1e-6
