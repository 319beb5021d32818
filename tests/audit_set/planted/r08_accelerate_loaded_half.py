# expect: R08
import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM


def main(args, loader):
    accelerator = Accelerator(mixed_precision="fp16")
    model = AutoModelForCausalLM.from_pretrained(args.name, torch_dtype=torch.float16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
