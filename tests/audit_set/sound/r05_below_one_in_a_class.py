import torch
class Watch:
    def __init__(self, limit=1.0):
        self.limit = limit
    def feed(self, scale):
        if scale < self.limit:
            raise RuntimeError("scale below one")
def loop(scaler, w=Watch()):
    w.feed(scaler.get_scale())
