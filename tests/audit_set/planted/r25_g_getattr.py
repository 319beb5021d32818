# expect: R25
import torch
class Q:
    def __init__(self, model):
        self.model = model.half()
    def bench(self, x):
        return self.model(x.half())
    def prepare(self):
        self.model = self.model.float()
        return torch.ao.quantization.prepare_qat(self.model)
