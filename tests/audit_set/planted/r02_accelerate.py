# expect: R02
import torch
from accelerate import Accelerator


def main(model, optimizer, loader):
    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(model):
            outputs = model(**batch)
            loss = outputs.loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
