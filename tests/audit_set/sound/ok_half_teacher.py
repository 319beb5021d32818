import torch
import torch.nn.functional as F


def distil(student, teacher, loader, optimizer):
    teacher = teacher.half().eval().requires_grad_(False)
    scaler = torch.amp.GradScaler("cuda")
    for x, _ in loader:
        x = x.cuda()
        with torch.no_grad():
            t = teacher(x.half()).float()
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            s = student(x)
            loss = F.kl_div(F.log_softmax(s / 2, -1), F.softmax(t / 2, -1), reduction="batchmean") * 4
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
