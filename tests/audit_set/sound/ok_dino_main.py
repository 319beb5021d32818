import math
import sys

import torch
import torch.nn.functional as F
from torch import nn


class DINOLoss(nn.Module):
    def __init__(self, out_dim, student_temp=0.1):
        super().__init__()
        self.student_temp = student_temp
        self.register_buffer("center", torch.zeros(1, out_dim))

    def forward(self, student_output, teacher_output, temp):
        student_out = (student_output / self.student_temp).chunk(2)
        teacher_out = F.softmax((teacher_output - self.center) / temp, dim=-1).detach().chunk(2)
        total = 0
        for q in teacher_out:
            for v in student_out:
                total += torch.sum(-q * F.log_softmax(v, dim=-1), dim=-1).mean()
        return total


def clip_gradients(model, clip):
    for _, p in model.named_parameters():
        if p.grad is not None:
            norm = p.grad.data.norm(2)
            coef = clip / (norm + 1e-6)
            if coef < 1:
                p.grad.data.mul_(coef)


def train_one_epoch(student, teacher, dino_loss, loader, optimizer, fp16_scaler, args):
    for it, (images, _) in enumerate(loader):
        images = [im.cuda(non_blocking=True) for im in images]
        with torch.autocast("cuda", enabled=fp16_scaler is not None):
            teacher_output = teacher(images[:2])
            student_output = student(images)
            loss = dino_loss(student_output, teacher_output, 0.04)
        if not math.isfinite(loss.item()):
            print("Loss is {}, stopping training".format(loss.item()), force=True)
            sys.exit(1)
        optimizer.zero_grad()
        if fp16_scaler is None:
            loss.backward()
            if args.clip_grad:
                clip_gradients(student, args.clip_grad)
            optimizer.step()
        else:
            fp16_scaler.scale(loss).backward()
            if args.clip_grad:
                fp16_scaler.unscale_(optimizer)
                clip_gradients(student, args.clip_grad)
            fp16_scaler.step(optimizer)
            fp16_scaler.update()
        with torch.no_grad():
            for q, k in zip(student.parameters(), teacher.parameters()):
                k.data.mul_(0.996).add_((1 - 0.996) * q.detach().data)
