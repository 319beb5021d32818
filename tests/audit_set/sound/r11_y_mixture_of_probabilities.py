import torch
import torch.nn.functional as F


def jensen_shannon(student, teacher, x, beta):
    with torch.autocast("cuda", dtype=torch.float16):
        log_p, log_q = F.log_softmax(student(x), -1), F.log_softmax(teacher(x), -1)
    p, q = log_p.exp(), log_q.exp()
    mix = (1 - beta) * p + beta * q
    log_mix = torch.log(mix.clamp_min(torch.finfo(mix.dtype).tiny))
    return (p * (log_p - log_mix) + q * (log_q - log_mix)).sum()


def masked(student_logps, teacher_logps, mask):
    zero = torch.zeros_like(student_logps)
    p = torch.where(mask, student_logps.exp(), zero)
    q = torch.where(mask, teacher_logps.exp(), zero)
    return torch.where(mask, torch.log(p + q), zero)


def floor(log_prob, weight):
    return torch.log((weight * torch.exp(log_prob)).sum(1) + 1e-6)
