# expect: R25
import torch
class Runner:
    def set_precision(self, half):
        self.net = self.net.half() if half else self.net.float()
    def run(self):
        self.set_precision(True)
        self.evaluate()
        self.set_precision(False)
        self.train()
