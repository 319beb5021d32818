# expect: R25
import torch
import modelopt.torch.quantization as mtq
from shop.nets import Segmenter

class Flow:
    def load(self, path):
        net = Segmenter()
        net.load_state_dict(torch.load(path, weights_only=True))
        return self.loaded(net)

    def loaded(self, net):
        return net

    def run(self, path, forward):
        net = self.load(path).float()
        return mtq.quantize(net, mtq.INT8_DEFAULT_CFG, forward)

class EdgeFlow(Flow):
    def loaded(self, net):
        return net.eval().half()

EdgeFlow().run("seg.pt", lambda net: net(torch.zeros(1, 3, 64, 64)))
