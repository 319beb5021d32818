# expect: R01
import torch
import torch.nn as nn

def forward(model, x):
    with torch.autocast("cuda"):
        return model(x)
def train(model, x, y):
    out = forward(model, x)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)(out, y)
