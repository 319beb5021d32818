from concurrent.futures import ThreadPoolExecutor
import torch
@torch.autocast("cuda", dtype=torch.float16)
def infer(model, b):
    return model(b.cuda())
def main(model, batches):
    with ThreadPoolExecutor(4) as pool, torch.autocast("cuda", dtype=torch.float16):
        return [f.result() for f in [pool.submit(infer, model, b) for b in batches]]
