# expect: R25
import torch
import torch.ao.quantization as tq
from net import Net
def main(ck):
    model = Net()
    model.load_state_dict(torch.load(ck, weights_only=True))
    model = model.cuda().half().float()
    tq.prepare_qat(model, inplace=True)
