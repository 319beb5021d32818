import torch


def predict(model, x):
    with torch.inference_mode(), torch.autocast("cuda", dtype=torch.float16):
        out = model(x)
    return out.to("cpu")


def scale_factors(trainer, batches):
    for batch in batches:
        with torch.no_grad(), torch.autocast("cuda", enabled=trainer.scaler is not None):
            trainer.forward(batch)
    return {name: p for name, p in trainer.model.to("cpu").named_parameters()}
