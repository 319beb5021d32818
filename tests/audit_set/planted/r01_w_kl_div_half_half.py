# expect: R01
import torch
import torch.nn.functional as F

def train(s, t, x):
    with torch.autocast("cuda"):
        so = student(x)
        with torch.no_grad():
            to = teacher(x)
    loss = F.kl_div(F.log_softmax(so / 4, 1), F.softmax(to / 4, 1), reduction="batchmean") * 16
