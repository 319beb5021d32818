# expect: R25
import torch
from torch.ao.quantization import prepare_qat, get_default_qat_qconfig
from net import Net
def export_half(model, path):
    half = model.half()
    torch.save(half.state_dict(), path)
def main():
    model = Net()
    model.load_state_dict(torch.load("amp.pt", weights_only=True))
    export_half(model, "half.pt")
    model.float()
    model.qconfig = get_default_qat_qconfig("x86")
    prepare_qat(model.train(), inplace=True)
