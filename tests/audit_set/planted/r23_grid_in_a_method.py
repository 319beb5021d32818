# expect: R23
import torch, torch.nn as nn, torch.nn.functional as F
class FlowHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(64, 2, 3, padding=1)
    def forward(self, f):
        return self.c(f)
class Warper(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = FlowHead()
    def make_grid(self, flow):
        return flow.permute(0, 2, 3, 1).clamp(-1, 1)
    def forward(self, x, f):
        return F.grid_sample(x, self.make_grid(self.head(f)), align_corners=True)
def load(path):
    w = Warper()
    w.load_state_dict(torch.load(path))
    return w.cuda().half().eval()
