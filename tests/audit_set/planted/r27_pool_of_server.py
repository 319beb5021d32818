# expect: R27
import torch
from concurrent.futures import ThreadPoolExecutor


class Server:
    def __init__(self, model, workers=4):
        self.model = model.cuda().eval()
        self.pool = ThreadPoolExecutor(workers)
        self.handler = self.handle

    def handle(self, x):
        with torch.inference_mode():
            return self.model(x.cuda()).cpu()

    def serve(self, xs):
        with torch.autocast("cuda", dtype=torch.float16):
            futures = [self.pool.submit(self.handler, x) for x in xs]
            return [f.result() for f in futures]
