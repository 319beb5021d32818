# expect: none
import torch
import torch.nn as nn
import torch.nn.functional as F

class STN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 6)
    def forward(self, x):
        theta = self.fc(x).view(-1, 2, 3)
        grid = F.affine_grid(theta, (x.size(0), 1, 64, 64), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)
def go(dl):
    m = STN().cuda()
    with torch.autocast("cuda"):
        m(x)
