# expect: R25
import contextlib, torch
@contextlib.contextmanager
def half_mode(model):
    model.half()
    try:
        yield model
    finally:
        model.float()
def validate(model, loader):
    with half_mode(model), torch.no_grad():
        return [model(x.half()) for x in loader]
