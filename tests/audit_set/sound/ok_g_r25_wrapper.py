import torch
class Wrapper(torch.nn.Module):
    def half(self):
        self.model.half()
        return self
    def float(self):
        self.model.float()
        return self
