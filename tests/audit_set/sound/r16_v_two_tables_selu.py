from torch import nn

ACTIVATIONS = {"relu": nn.ReLU, "elu": nn.ELU, "selu": nn.SELU}
DROPOUTS = {"plain": nn.Dropout, "alpha": nn.AlphaDropout}


class Head(nn.Module):
    def __init__(self, dim, activation="selu", dropout="alpha"):
        super().__init__()
        act, drop = ACTIVATIONS[activation], DROPOUTS[dropout]
        self.layers = nn.Sequential(nn.Linear(dim, dim), act(), drop(p=0.2), nn.Linear(dim, 2))

    def forward(self, x):
        return self.layers(x)


head = Head(32)
