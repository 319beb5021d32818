import torch, torch.nn.functional as F
def train(net, loader, opt, dev):
    for x, y in loader:
        with torch.autocast(device_type=dev.type, dtype=net.dtype):
            out = net(x)
        loss = F.cross_entropy(out, y)
        loss.backward(); opt.step(); opt.zero_grad()
