import torch
class T:
    def __init__(self, student, teacher):
        self.student = student.cuda()
        self.teacher = teacher.cuda().half().eval()
        self.opt = torch.optim.AdamW(self.student.parameters(), lr=1e-4)
        self.scaler = torch.amp.GradScaler("cuda")
    def step(self, x):
        self.opt.zero_grad()
        with torch.no_grad():
            t = self.teacher(x.half()).float()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(self.student(x), t)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
