# expect: R25
import torch


def export_master(model, path):
    sd = {k: v.half() for k, v in model.state_dict().items()}
    model.load_state_dict({k: v.float() for k, v in sd.items()})
    torch.save(model.state_dict(), path)
