# expect: R15
import torch
from functools import partial
from torchvision import transforms as T
import torchvision.transforms.functional as TF
half = partial(TF.convert_image_dtype, dtype=torch.float16)
tf = T.Compose([T.PILToTensor(), T.Lambda(half), T.Normalize([0.5] * 3, [0.5] * 3)])
