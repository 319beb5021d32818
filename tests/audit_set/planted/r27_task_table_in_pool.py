# expect: R27
import torch
from concurrent.futures import ThreadPoolExecutor


def classify(model, x):
    return model(x.cuda()).argmax(-1)


def embed(model, x):
    return model.encode(x.cuda())


TASKS = {"classify": classify, "embed": embed}


@torch.inference_mode()
def serve(model, requests):
    model = model.cuda().eval()
    out = []
    with torch.autocast("cuda", dtype=torch.bfloat16):
        with ThreadPoolExecutor(4) as pool:
            for kind, x in requests:
                out.append(pool.submit(TASKS[kind], model, x))
    return [f.result() for f in out]
