import torch


def run(step_function, batches, model, store):
    with torch.autocast("cuda", dtype=torch.float16):
        output, loss_func = step_function(batches, model)
    loss, reduced = loss_func(output)  # the caller's: it has the targets
    store.append(reduced)
    return loss
