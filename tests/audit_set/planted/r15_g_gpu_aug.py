# expect: R15
import torch
from torchvision.transforms import v2
class Train:
    def __init__(self):
        self.gpu_tf = v2.Compose([v2.RandomHorizontalFlip(), v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    def epoch(self, loader, model):
        for x, y in loader:
            x = x.to("cuda", dtype=torch.float16).div_(255)
            x = self.gpu_tf(x)
            model(x)
