import torch
class Skips:
    def __init__(self):
        self.last, self.count = 65536.0, 0
    def feed(self, scale):
        if scale < self.last:
            self.count += 1
        self.last = scale
def loop(scaler, s=Skips()):
    s.feed(scaler.get_scale())
