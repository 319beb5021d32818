# expect: none
import torch


def attach(model):
    def hook(name):
        def check(module, inputs, output):
            if torch.is_tensor(output) and not torch.isfinite(output).all():
                raise FloatingPointError(name)

        return check

    return [m.register_forward_hook(hook(n)) for n, m in model.named_modules()]


def train_step(model, x, y, loss_fn):
    loss = loss_fn(model(x), y)
    if not torch.isfinite(loss):
        raise RuntimeError("loss is not finite")
    return loss
