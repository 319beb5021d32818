import torch


def main(build, path):
    infer = build().half().eval()
    train = build().float()
    train.load_state_dict(torch.load(path, weights_only=True))
    return infer, train
