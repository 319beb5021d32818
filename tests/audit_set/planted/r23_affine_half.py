# expect: R23
import torch
from torch.nn.functional import affine_grid, grid_sample


def rotate(image, theta):
    theta = theta.to(torch.float16)
    grid = affine_grid(theta, [1, 3, 1080, 1920], align_corners=False)
    return grid_sample(image.half(), grid, align_corners=False)
