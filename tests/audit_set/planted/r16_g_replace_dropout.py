# expect: R16
import torch.nn as nn
def swap(model):
    for name, m in model.named_children():
        if isinstance(m, nn.Dropout):
            setattr(model, name, nn.AlphaDropout(m.p))
        else:
            swap(m)
    return model
