import torch


def build(factory):
    net, criterion = factory(), torch.nn.MSELoss()
    net.cuda()
    return net, criterion


def groups(net):
    return [{"params": net.parameters()}]


def fit(factory, batches):
    net, criterion = build(factory)
    opt = torch.optim.Adam(groups(net))
    for x, y in batches:
        opt.zero_grad()
        criterion(net(x.cuda()).float(), y).backward()
        opt.step()
