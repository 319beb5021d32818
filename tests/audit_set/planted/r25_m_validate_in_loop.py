# expect: R25
import torch
def validate(model, loader):
    model = model.half().eval()
    for x, y in loader:
        model(x.half())
def main(model, loader):
    for epoch in range(3):
        model.float().train()
        fit(model, loader)
        validate(model, loader)
