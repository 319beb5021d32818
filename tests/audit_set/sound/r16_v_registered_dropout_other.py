from torch import nn

DROPOUT = {}


def register(table, key):
    def deco(fn):
        table[key] = fn
        return fn
    return deco


@register(DROPOUT, "alpha")
def alpha(p):
    return nn.AlphaDropout(p)


@register(DROPOUT, "plain")
def plain(p):
    return nn.Dropout(p)


class Net(nn.Module):
    def __init__(self, dim, dropout="plain"):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), DROPOUT[dropout](0.2), nn.Linear(dim, 1))

    def forward(self, x):
        return self.net(x)


net = Net(16)
