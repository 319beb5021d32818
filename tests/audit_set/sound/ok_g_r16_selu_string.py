import torch.nn as nn
class S(nn.Module):
    def __init__(self, d, act="selu"):
        super().__init__()
        self.act = get_act(act)
        self.drop = nn.AlphaDropout(0.05)
