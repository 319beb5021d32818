# expect: R15
import torch
import torchvision.transforms.functional as TF


def prepare(batch):
    batch = batch.cuda().half() / 255
    return TF.normalize(batch, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
