import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def restore(name):
    lm = AutoModelForCausalLM.from_pretrained(name)
    return lm.to("cuda"), AutoTokenizer.from_pretrained(name)


def optimizer_of(lm):
    with_decay = [p for n, p in lm.named_parameters() if "norm" not in n]
    without = [p for n, p in lm.named_parameters() if "norm" in n]
    return torch.optim.AdamW([{"params": with_decay}, {"params": without, "weight_decay": 0.0}], lr=1e-5)


def tune(name, batches):
    lm, tokeniser = restore(name)
    opt = optimizer_of(lm)
    for batch in batches:
        lm(**tokeniser(batch, return_tensors="pt").to("cuda")).loss.backward()
        opt.step()
        opt.zero_grad()
