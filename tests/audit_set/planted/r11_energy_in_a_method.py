# expect: R11
import torch
class Memory:
    def read(self, q):
        e = self.energy(q).exp()
        return (e / e.sum(1, keepdim=True)) @ self.values
    def energy(self, q):
        return q @ self.keys.t()
def run(mem, net, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return mem.read(net(x))
