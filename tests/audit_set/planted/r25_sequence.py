# expect: R25
import torch


def evaluate_then_continue(model, loader, train):
    model.half()
    model.eval()
    with torch.no_grad():
        hits = sum((model(x.half()).argmax(1) == y).sum().item() for x, y in loader)
    model.float()
    model.train()
    train(model)
    return hits
