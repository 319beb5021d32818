import torch
def main(net, loader):
    model = torch.nn.DataParallel(net).cuda()
    for x in loader:
        with torch.autocast("cuda"):
            model(x.cuda())
