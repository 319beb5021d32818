# expect: R12
import torch
import torch.nn as nn

from fastai.vision.all import Learner
learn = Learner(dls, model, loss_func=nn.BCELoss()).to_fp16()
