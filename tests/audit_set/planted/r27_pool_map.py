# expect: R27
from concurrent.futures import ThreadPoolExecutor

import torch


def infer(model, batches):
    def one(b):
        return model(b.cuda())

    with torch.inference_mode(), torch.autocast("cuda", dtype=torch.float16):
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(one, batches))
