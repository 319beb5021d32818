# expect: none
import torch
import torch.nn as nn
import torch.nn.functional as F

class Reg(nn.Module):
    def __init__(self):
        super().__init__()
        self.theta = nn.Linear(256, 6)
    def forward(self, mov, fix):
        t = self.theta(fix).float()
        grid = F.affine_grid(t.view(-1, 2, 3), mov.size(), align_corners=False)
        return F.grid_sample(mov.float(), grid, align_corners=False)
def go(m, f):
    model = Reg().cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        w = model(m, f)
