import torch
from net import Net
def main():
    model = Net().cuda()
    model.half()
    bench(model)
    model = Net()
    model.load_state_dict(torch.load("a.pt", weights_only=True))
    model.float()
    torch.ao.quantization.prepare_qat(model.train(), inplace=True)
