import torch

torch.set_default_dtype(torch.float16)


def load(build, path):
    model = build().cuda().eval()
    model.load_state_dict(torch.load(path, weights_only=True))
    torch.set_default_dtype(torch.float32)
    return model
