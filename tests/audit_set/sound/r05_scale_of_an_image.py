import torch
class Resize:
    def __init__(self, limits=(2 ** 14, 2 ** 18)):
        self.limits = limits
    def check(self, scale):
        return self.limits[0] <= scale <= self.limits[1]
def loop(r, img, scaler):
    r.check(img.scale)
    print(scaler.get_scale())
