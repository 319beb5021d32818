import torch.nn as nn
def set_p(model, p):
    for m in model.modules():
        if isinstance(m, (nn.Dropout, nn.AlphaDropout)):
            m.p = p
