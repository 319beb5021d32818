# expect: none
from concurrent.futures import ThreadPoolExecutor

import torch


def infer_all(models, x):
    def run_model(model):
        with torch.autocast("cuda", dtype=torch.float16):
            return model(x)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(run_model, models))
