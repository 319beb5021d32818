# expect: R25
import torch
from torch.ao.quantization import get_default_qat_qconfig, prepare_qat
from shop.nets import Classifier

class Store:
    @staticmethod
    def restore(path, fp16=True):
        net = Classifier()
        net.load_state_dict(torch.load(path, weights_only=True))
        if fp16:
            net = net.half()
        return net.cuda().eval()

def qat(path):
    net = Store.restore(path).float()
    net.qconfig = get_default_qat_qconfig("x86")
    return prepare_qat(net.train())
