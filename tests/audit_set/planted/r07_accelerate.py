# expect: R07
import torch
from accelerate import Accelerator

accelerator = Accelerator(mixed_precision="fp16")


def train(model, optimizer, loader):
    for batch in loader:
        loss = model(**batch).loss
        accelerator.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
