# expect: none
import torch
import torch.nn as nn
import torch.nn.functional as F

class STN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(8, 32), nn.ReLU(True), nn.Linear(32, 6))
    def forward(self, x):
        theta = self.fc(x.flatten(1)).view(-1, 2, 3)
        with torch.autocast("cuda", enabled=False):
            grid = F.affine_grid(theta.float(), x.size(), align_corners=False)
            return F.grid_sample(x.float(), grid, align_corners=False)
def train(loader):
    stn = STN().cuda()
    for x in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            y = stn(x)
