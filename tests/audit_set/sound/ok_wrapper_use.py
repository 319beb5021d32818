# expect: none
import torch
from timm.utils import NativeScaler


def train(model, loader, optimizer, loss_fn, args):
    loss_scaler = NativeScaler()
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        if loss_scaler is not None:
            loss_scaler(loss, optimizer, clip_grad=args.clip_grad, parameters=model.parameters())
        else:
            loss.backward()
            if args.clip_grad is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
            optimizer.step()
