# expect: R27
import torch
from concurrent.futures import ThreadPoolExecutor


class Replica:
    def __init__(self, model, device):
        self.model = model.to(device).eval()
        self.device = device

    def __call__(self, batch):
        with torch.no_grad():
            return self.model(batch.to(self.device)).cpu()


def run(make_model, batches):
    replicas = [Replica(make_model(), f"cuda:{i}") for i in range(torch.cuda.device_count())]
    with ThreadPoolExecutor(len(replicas)) as pool, torch.autocast("cuda", dtype=torch.float16):
        futures = [pool.submit(replicas[i % len(replicas)], b) for i, b in enumerate(batches)]
        return torch.cat([f.result() for f in futures])
