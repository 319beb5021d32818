# expect: R14
import torch


def evaluate(model, loader):
    model.eval()
    with torch.no_grad(), torch.cuda.amp.autocast():
        return [model(x.cuda()).argmax(1) for x in loader]
