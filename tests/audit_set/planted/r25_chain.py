# expect: R25
import torch


def prepare_for_qat(model, checkpoint, prepare):
    model.load_state_dict(torch.load(checkpoint, weights_only=True))
    model = model.half().float()
    return prepare(model)
