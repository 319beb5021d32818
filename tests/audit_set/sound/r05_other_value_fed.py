import torch
class Meter:
    def __init__(self, top=65536):
        self.top = top
    def feed(self, value):
        if value < self.top:
            self.last = value
def loop(scaler, m, tokens):
    m.feed(tokens)
    print(scaler.get_scale())
