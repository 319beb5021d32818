# expect: R27
from concurrent.futures import ThreadPoolExecutor
import torch
pool = ThreadPoolExecutor(4)
def main(models, x):
    with torch.amp.autocast("cuda"):
        return list(pool.map(lambda m: m(x), models))
