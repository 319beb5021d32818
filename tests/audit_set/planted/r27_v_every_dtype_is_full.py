# expect: R27
import argparse

import torch

DTYPES = {"amp": torch.float32, "full": torch.float32}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dtype", choices=list(DTYPES), required=True)
    args = p.parse_args()
    model = torch.nn.Linear(8, 8).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in []:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=DTYPES[args.dtype]):
            loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()


main()
