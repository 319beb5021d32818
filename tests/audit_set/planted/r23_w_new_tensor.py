# expect: R23
import torch
import torch.nn.functional as F

def rotate(img, a):
    img = img.half()
    theta = img.new_tensor([[1, 0, 0.1], [0, 1, 0]])
    grid = F.affine_grid(theta[None], img.shape)
    return F.grid_sample(img, grid)
