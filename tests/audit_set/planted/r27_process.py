# expect: R27
import torch
import torch.multiprocessing as mp
def worker(rank, model):
    x = torch.randn(4, 8, device=rank)
    model.to(rank)(x)
def main(model):
    with torch.autocast("cuda", dtype=torch.float16):
        mp.spawn(worker, args=(model,), nprocs=2)
