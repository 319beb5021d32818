# expect: none
import torch
import torch.nn.functional as F


def distil(student, teacher, loader):
    teacher = teacher.half().eval()
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.no_grad():
            soft = teacher(x.half()).float()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.kl_div(F.log_softmax(student(x), 1), soft.softmax(1), reduction="batchmean")
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
