# expect: R08, R09
import torch


def groups(net, lr):
    matrices = [p for p in net.parameters() if p.dim() > 1]
    vectors = [p for p in net.parameters() if p.dim() <= 1]
    return torch.optim.Adam([{"params": matrices, "weight_decay": 0.1}, {"params": vectors}], lr=lr, eps=1e-8)


def main(loader):
    net = torch.nn.LSTM(64, 64).to("cuda", torch.float16)
    opt = groups(net, 1e-3)
    for x, y in loader:
        opt.zero_grad()
        torch.nn.functional.mse_loss(net(x)[0].float(), y).backward()
        opt.step()
