# expect: R08
import torch

OPTIMS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def train(net, loader, args):
    net = net.half().cuda()
    opt = OPTIMS[args.optim](net.parameters(), lr=args.lr)
    for x, y in loader:
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x.half().cuda()).float(), y.cuda())
        loss.backward()
        opt.step()
