# expect: R25
import torch
from torch.ao.quantization import prepare_qat
from net import Net
def main():
    model = Net()
    model.load_state_dict(torch.load("amp.pt", weights_only=True))
    torch.save(model.half().state_dict(), "half.pt")
    qat = Net()
    qat.load_state_dict(torch.load("half.pt", weights_only=True))
    prepare_qat(qat.train(), inplace=True)
