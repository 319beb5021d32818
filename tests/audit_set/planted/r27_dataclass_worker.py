# expect: R27
import threading
import torch
from dataclasses import dataclass, field


@dataclass
class Worker:
    net: torch.nn.Module
    device: str
    results: list = field(default_factory=list)

    def run(self, items):
        for it in items:
            self.results.append(self.net(it.to(self.device)))


def launch(nets, items):
    workers = [Worker(n.to(f"cuda:{i}"), f"cuda:{i}") for i, n in enumerate(nets)]
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
        ts = []
        for w in workers:
            t = threading.Thread(target=w.run, args=(items,))
            t.start()
            ts.append(t)
        for t in ts:
            t.join()
    return [w.results for w in workers]
