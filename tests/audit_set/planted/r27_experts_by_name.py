# expect: R27
import torch
from concurrent.futures import ThreadPoolExecutor, as_completed


class Expert:
    def __init__(self, model, device):
        self.model, self.device = model.to(device), device

    def predict(self, x):
        return self.model(x.to(self.device)).cpu()


def ensemble(experts, x):
    with ThreadPoolExecutor(len(experts)) as ex, torch.no_grad():
        with torch.autocast(device_type="cuda", dtype=torch.float16):
            jobs = {ex.submit(e.predict, x): name for name, e in experts.items()}
            return {jobs[j]: j.result() for j in as_completed(jobs)}


def main(build, x):
    experts = {n: Expert(build(n), f"cuda:{i}") for i, n in enumerate(("a", "b", "c"))}
    return ensemble(experts, x)
