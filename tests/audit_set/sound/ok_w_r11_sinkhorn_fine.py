# expect: none
import torch

def sinkhorn(out, eps):
    q = torch.exp(out / eps).t()
    q /= torch.sum(q)
    for _ in range(3):
        q /= torch.sum(q, dim=1, keepdim=True)
        q /= torch.sum(q, dim=0, keepdim=True)
    return q.t()
scaler = torch.amp.GradScaler("cuda")
