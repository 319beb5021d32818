# expect: R15
import torch
from torchvision import transforms
pre = transforms.Compose([transforms.ToTensor(), transforms.ConvertImageDtype(torch.float16)])
norm = transforms.Normalize([0.5], [0.5])
def infer(img, model):
    x = norm(pre(img)).unsqueeze(0).cuda()
    return model.half()(x)
