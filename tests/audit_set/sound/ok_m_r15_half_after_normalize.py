import torch
from torchvision.transforms import v2
tf = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])])
post = v2.Compose([v2.ToDtype(torch.float16)])
def f(img):
    x = tf(img)
    return post(x)
