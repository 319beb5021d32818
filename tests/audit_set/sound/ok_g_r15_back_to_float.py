import torch
import torchvision.transforms.functional as TF
def prep(x):
    x = x.cuda().half()
    x = TF.resize(x, [224, 224]).float()
    return TF.normalize(x, [0.5] * 3, [0.5] * 3).half()
