import torch
def main(model, loader):
    model.cuda()
    for x in loader:
        with torch.autocast("cuda"):
            model(x.cuda())
    model.cpu().eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(torch.randn(1, 3))
