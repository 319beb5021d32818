# expect: R27
from concurrent.futures import ThreadPoolExecutor, as_completed
import torch
def score(net, tiles):
    def one(tile):
        return net(tile.unsqueeze(0).cuda()).sigmoid().cpu()
    with torch.autocast("cuda"):
        with ThreadPoolExecutor() as ex:
            futures = {ex.submit(one, t): i for i, t in enumerate(tiles)}
            return [f.result() for f in as_completed(futures)]
