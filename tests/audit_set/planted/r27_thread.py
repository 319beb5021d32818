# expect: R27
from concurrent.futures import ThreadPoolExecutor

import torch


def infer_all(models, x):
    def run_model(model):
        return model(x)

    with torch.autocast("cuda", dtype=torch.float16):
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(run_model, models))
