import torch
from concurrent.futures import ThreadPoolExecutor


class Loader:
    def __init__(self, root):
        self.root = root

    def __call__(self, name):
        return torch.load(f"{self.root}/{name}.pt", weights_only=True)


def score(model, root, names):
    load = Loader(root)
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
        with ThreadPoolExecutor(3) as pool:
            for x in pool.map(load, names):
                yield model(x.cuda())
