# expect: R27
import torch
from contextlib import ExitStack
def f(model, x):
    model.to("cuda")
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
        return model(x.to("cuda"))
