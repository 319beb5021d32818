# expect: R27
import concurrent.futures as cf, torch
class Ens:
    def __init__(self, models):
        self.models = models
        self.pool = cf.ThreadPoolExecutor(len(models))
    def _one(self, m, x): return m(x)
    @torch.no_grad()
    def __call__(self, x):
        with torch.autocast("cuda", dtype=torch.float16):
            jobs = [self.pool.submit(self._one, m, x) for m in self.models]
            return torch.stack([j.result().float() for j in jobs]).mean(0)
