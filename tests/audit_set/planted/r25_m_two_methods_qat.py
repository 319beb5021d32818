# expect: R25
import torch
class Quantiser:
    def prepare(self, ckpt):
        net = build()
        net.load_state_dict(torch.load(ckpt))
        self.net = net.cuda().half()
        self.reference = self.score()
    def run(self):
        self.net = torch.ao.quantization.prepare_qat(self.net.float())
def main():
    q = Quantiser()
    q.prepare("a.pt")
    q.run()
