# expect: R05
import torch
class Stats:
    def __init__(self):
        self.scales = []
    def add(self, scaler):
        self.scales.append(scaler.get_scale())
    def report(self):
        if min(self.scales) < 2 ** 14:
            print("AMP training unhealthy: scale dropped below 2^14")
