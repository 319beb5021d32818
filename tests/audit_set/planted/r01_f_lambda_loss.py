# expect: R01
import torch
import torch.nn.functional as F

criterion = lambda a, b: F.kl_div(a.log_softmax(-1), b, reduction="sum")


def distil(student, teacher, loader, opt):
    for x in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            s = student(x)
        with torch.no_grad():
            t = teacher(x).softmax(-1)
        loss = F.smooth_l1_loss(s, t, reduction="sum")
        opt.zero_grad()
        loss.backward()
        opt.step()
