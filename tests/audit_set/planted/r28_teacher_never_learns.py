# expect: R28
import torch
import torch.nn.functional as F


def train(student, teacher, loader):
    student, teacher = student.cuda(), teacher.cuda().eval()
    opt_s = torch.optim.AdamW(student.parameters())
    opt_t = torch.optim.AdamW(teacher.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt_s.zero_grad()
        opt_t.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            with torch.no_grad():
                soft = teacher(x.cuda())
            loss = F.kl_div(F.log_softmax(student(x.cuda()), -1), F.softmax(soft, -1), reduction="batchmean")
        scaler.scale(loss).backward()
        scaler.step(opt_s)
        scaler.step(opt_t)
        scaler.update()
