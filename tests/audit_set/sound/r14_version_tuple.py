import torch
V = tuple(int(i) for i in torch.__version__.split("+")[0].split(".")[:2])
def mk():
    if V >= (2, 4):
        return torch.amp.GradScaler("cuda")
    return torch.cuda.amp.GradScaler()
