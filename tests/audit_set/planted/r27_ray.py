# expect: R27
import torch
from joblib import Parallel, delayed
def main(models, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return Parallel(n_jobs=4, prefer="threads")(delayed(m)(x) for m in models)
