import torch
from concurrent.futures import ThreadPoolExecutor


class Prefetch:
    def __init__(self, ds):
        self.ds = ds

    def fetch(self, i):
        return self.ds[i].pin_memory()


def evaluate(model, ds, n):
    pre = [Prefetch(ds), Prefetch(ds)]
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16), ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(pre[i % 2].fetch, i) for i in range(n)]
        return torch.cat([model(f.result().cuda()) for f in futures])
