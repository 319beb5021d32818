import torch
import torch.nn.functional as F


def scores(model, mel, tokens):
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
        logits = model(mel, tokens)
        probs = logits.float().softmax(dim=-1)
    log_probs = F.log_softmax(logits.float(), dim=-1)
    return probs, log_probs
