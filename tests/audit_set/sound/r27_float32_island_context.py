import contextlib

import torch


@contextlib.contextmanager
def force_float32():
    with torch.amp.autocast(device_type="cuda", dtype=torch.float32):
        yield


def codes(codec, audio):
    with torch.no_grad(), torch.autocast(device_type="cuda", dtype=torch.float32):
        return codec.encode(audio)
